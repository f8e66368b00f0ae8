#!/bin/sh
# Power back-end for ipmi_sim (config line: chassis_control "<path>/chassis.sh <state-file>").
# ipmi_sim appends only the request to that string (no controller address):
#   chassis.sh STATE get power        -> answer on stdout: "power:0" or "power:1"
#   chassis.sh STATE set power 1      -> do it, exit 0
# Others end a machine that they own:
#   chassis.sh STATE end              -> its power is gone, and nobody asked for it
# STATE holds 0 or 1. STATE.log gets one line per event, `<seconds> <event> <on|off>`:
#   read    a client asked for the power state and was told this
#   asked   a client asked for this power state
#   became  the machine's power really changed to this
# Optional files beside STATE make it misbehave:
#   STATE.delay  seconds to hold back a power change   STATE.stuck  accept the command, change nothing
#   STATE.fail   refuse (non-zero exit -> IPMI completion code 0xff)
#   STATE.hold   seconds to hold back the answer to a power command
state=$1; verb=$2; shift 2
note() { echo "$(date +%s.%N) $1 $( [ "$2" = 0 ] && echo off || echo on)" >> "$state.log"; }
[ -s "$state" ] || echo 1 > "$state"
# A rename, so that a reader never meets an empty file.
become() { echo "$1" > "$state.$$" && mv "$state.$$" "$state" && note became "$1"; }
put() {
  note asked "$1"
  [ -e "$state.stuck" ] && return 0
  if [ -s "$state.delay" ]; then
    wait_s=$(cat "$state.delay"); (sleep "$wait_s"; become "$1") >/dev/null 2>&1 & return 0
  fi
  become "$1"
}
[ "$verb" = set ] && [ -e "$state.fail" ] && { echo refused >&2; exit 1; }
case $verb in
get)
  for p in "$@"; do
    case $p in
      power) now=$(cat "$state"); note read "$now"; echo "power:$now" ;;
      boot)  echo "boot:none" ;;
      *) echo "unknown parameter $p" >&2; exit 1 ;;
    esac
  done ;;
set)
  while [ $# -gt 0 ]; do
    k=$1; v=$2; shift 2
    case $k in
      # Before the change is seen: a hold that comes after it is for the next command.
      power) held=$(cat "$state.hold" 2>/dev/null); put "$v"; [ -n "$held" ] && sleep "$held" ;;
      reset) : ;;
      shutdown) [ "$v" = 1 ] && put 0 ;;
      boot|identify) : ;;
      *) echo "unknown parameter $k" >&2; exit 1 ;;
    esac
  done ;;
end) become 0 ;; # nobody asked: the machine itself is gone
check) : ;;
esac
exit 0

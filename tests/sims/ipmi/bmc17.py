#!/usr/bin/env python3
"""A small IPMI 2.0 (RMCP+) BMC for tests, loopback only, with cipher suites 3 AND 17.

ipmi_sim stops at HMAC-SHA1, so a suite-17 client has nothing real to talk
to; this one is checked against ipmitool's client (an independent implementation).

usage: bmc17.py PORT DIR [--suites 3,17] [--guid 32HEX] [--user NAME:PASSWORD:PRIV]...   PRIV 1..4 (4 = administrator)
DIR/power holds 0 or 1. DIR/faults (optional, re-read per packet) holds `name value` lines:
  drop N           ignore the next N datagrams          delay MS        answer late
  dup 1            send every answer twice              silent 1        never answer
  rakp2_status S   error status in RAKP 2               rakp4_status S  error status in RAKP 4
  open_status S    error status in open-session answer  bad_rakp2 1     wrong key exchange code
  bad_rakp4 1      wrong integrity check value          bad_tag 1       wrong message tag
  bad_auth 1       wrong per-packet auth code           wrong_sid 1     answer to a foreign session
  no_ciphers 1     refuse Get Channel Cipher Suites     stuck 1         take power commands, do nothing
  cc NN            completion code for chassis control  off_after MS    power change comes late
  truncate N       cut answers to N bytes               kill_session 1  forget sessions after RAKP
DIR/log gets one line per request. DIR/power.log gets one line per power event, in the same words as
chassis.sh: `<seconds> read|asked|became on|off`.
"""
import hashlib
import hmac
import os
import socket
import struct
import sys
import threading
import time

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

ALGS = {3: (1, 1, 1), 17: (3, 4, 1), 2: (1, 1, 0), 1: (1, 0, 0), 16: (3, 4, 0), 15: (3, 0, 0)}
HASH = {1: hashlib.sha1, 3: hashlib.sha256}
ICV_LEN = {1: 12, 3: 16}          # RAKP 4 check value by authentication algorithm
AUTH_LEN = {1: 12, 4: 16}         # per-packet code by integrity algorithm
GUID = bytes(range(0xa0, 0xb0))


def csum(b):
    return (-sum(b)) & 0xff


class Session:
    pass


class Bmc:
    def __init__(self, port, directory, suites, users):
        self.dir, self.suites, self.users = directory, suites, users
        self.sessions = {}
        self.next_sid = 0x02000100
        os.makedirs(directory, exist_ok=True)
        self.log = open(os.path.join(directory, 'log'), 'a', buffering=1)
        self.power_log = open(os.path.join(directory, 'power.log'), 'a', buffering=1)
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(('127.0.0.1', port))
        self.dropped = 0

    # ---- state and faults -------------------------------------------------
    def power(self, value=None):
        path = os.path.join(self.dir, 'power')
        if value is None:
            try:
                return int(open(path).read())
            except (OSError, ValueError):
                return 1
        with open(path + '.new', 'w') as f:
            f.write('%d\n' % value)
        os.replace(path + '.new', path)
        self.note('became', value)

    def note(self, event, value):
        self.power_log.write('%.9f %s %s\n' % (time.time(), event, 'on' if value else 'off'))

    def faults(self):
        out = {}
        try:
            for line in open(os.path.join(self.dir, 'faults')):
                part = line.split()
                if len(part) == 2:
                    out[part[0]] = int(part[1], 0)
        except OSError:
            self.dropped = 0
        return out

    # ---- wire -------------------------------------------------------------
    def send(self, data, peer, f):
        if f.get('delay'):
            time.sleep(f['delay'] / 1000)
        if f.get('truncate'):
            data = data[:f['truncate']]
        for _ in range(2 if f.get('dup') else 1):
            self.sock.sendto(data, peer)

    def serve(self):
        while True:
            data, peer = self.sock.recvfrom(2048)
            f = self.faults()
            if f.get('silent'):
                continue
            if f.get('drop', 0) > self.dropped:
                self.dropped += 1
                continue
            try:
                self.packet(data, peer, f)
            except Exception as e:                       # malformed input must not end the simulator
                self.log.write('malformed %s: %r\n' % (data.hex(), e))

    def packet(self, data, peer, f):
        if len(data) < 5 or data[0] != 6:
            return
        if data[3] & 0x1f == 6:                          # ASF presence ping -> pong
            if data[8] == 0x80:
                pong = bytes([6, 0, 0xff, 6]) + struct.pack('>IBBBB', 4542, 0x40, data[9], 0, 16)
                self.send(pong + struct.pack('>II', 4542, 0) + bytes([0x81, 0]) + bytes(6), peer, f)
            return
        if data[4] == 6:
            return self.rmcpplus(data, peer, f)
        if data[4] == 0:                                 # session-less v1.5 wrapper
            n = data[13]
            reply = self.message(data[14:14 + n], None, f)
            if reply:
                self.send(bytes([6, 0, 0xff, 7, 0]) + bytes(8) + bytes([len(reply)]) + reply, peer, f)

    def rmcpplus(self, data, peer, f):
        ptype = data[5]
        sid, seq, n = struct.unpack('<IIH', data[6:16])
        body, kind = data[16:16 + n], ptype & 0x3f
        if kind == 0x10:
            return self.open_session(body, peer, f)
        if kind == 0x12:
            return self.rakp1(body, peer, f)
        if kind == 0x14:
            return self.rakp3(body, peer, f)
        if sid == 0 and kind == 0 and not ptype & 0xc0:  # before a session, but in the v2.0 wrapper:
            reply = self.message(body, None, f)          # ipmitool asks for the cipher suites this way
            if reply:
                self.plain(0, reply, peer, {k: v for k, v in f.items() if k != 'bad_tag'})
            return
        s = self.sessions.get(sid)
        if s is None or not s.up:
            return self.log.write('no session %08x\n' % sid)
        if s.algs[1]:
            size = AUTH_LEN[s.algs[1]]
            if not ptype & 0x40:
                return self.log.write('unauthenticated packet refused\n')
            code = hmac.new(s.k1, data[4:-size], s.h).digest()[:size]
            if not hmac.compare_digest(code, data[-size:]):
                return self.log.write('bad auth code from client\n')
        if seq <= s.seen - 16 or seq in s.recent:
            return self.log.write('replayed sequence %d\n' % seq)
        s.recent.add(seq)
        s.seen = max(s.seen, seq)
        if ptype & 0x80:
            dec = Cipher(algorithms.AES(s.k2[:16]), modes.CBC(body[:16])).decryptor()
            plain = dec.update(body[16:]) + dec.finalize()
            body = plain[:-plain[-1] - 1]
        reply = self.message(body, s, f)
        if reply is None:
            return
        flags = 0
        if s.algs[2]:
            pad = (-len(reply) - 1) % 16
            plain = reply + bytes(range(1, pad + 1)) + bytes([pad])
            iv = os.urandom(16)
            enc = Cipher(algorithms.AES(s.k2[:16]), modes.CBC(iv)).encryptor()
            reply, flags = iv + enc.update(plain) + enc.finalize(), 0x80
        if s.algs[1]:
            flags |= 0x40
        s.out += 1
        remote = s.remote_sid ^ (0x5a5a if f.get('wrong_sid') else 0)
        pkt = bytes([6, flags]) + struct.pack('<IIH', remote, s.out, len(reply)) + reply
        if s.algs[1]:
            pad = (-len(pkt) - 2) % 4
            pkt += b'\xff' * pad + bytes([pad, 7])
            code = hmac.new(s.k1, pkt, s.h).digest()[:AUTH_LEN[s.algs[1]]]
            pkt += bytes([code[0] ^ 1]) + code[1:] if f.get('bad_auth') else code
        self.send(bytes([6, 0, 0xff, 7]) + pkt, peer, f)
        if s.closing:
            self.sessions.pop(sid, None)

    def plain(self, kind, body, peer, f):
        if f.get('bad_tag'):
            body = bytes([body[0] ^ 0x55]) + body[1:]
        self.send(bytes([6, 0, 0xff, 7, 6, kind]) + struct.pack('<IIH', 0, 0, len(body)) + body, peer, f)

    # ---- session set-up -----------------------------------------------------
    def open_session(self, b, peer, f):
        tag, want, remote = b[0], b[1] & 0xf, struct.unpack('<I', b[4:8])[0]
        algs = (b[12], b[20], b[28])
        status = f.get('open_status', 0)
        if not status and algs not in [ALGS[c] for c in self.suites]:
            status = 0x11                                # no matching cipher suite
        if not status and len(self.sessions) >= 8:
            status = 0x01                                # out of resources
        self.log.write('open algs=%s priv=%d status=%02x\n' % (algs, want, status))
        if status:
            return self.plain(0x11, bytes([tag, status, 0, 0]) + b[4:8], peer, f)
        s = Session()
        s.algs, s.remote_sid, s.sid, s.up, s.closing = algs, remote, self.next_sid, False, False
        s.out, s.seen, s.recent, s.h = 0, 0, set(), HASH[algs[0]]
        self.next_sid += 1
        self.sessions[s.sid] = s
        out = bytes([tag, 0, want or 4, 0]) + struct.pack('<II', remote, s.sid)
        for i, a in enumerate(algs):
            out += bytes([i, 0, 0, 8, a, 0, 0, 0])
        self.plain(0x11, out, peer, f)

    def rakp1(self, b, peer, f):
        tag, sid = b[0], struct.unpack('<I', b[4:8])[0]
        s = self.sessions.get(sid)
        if s is None:
            return self.plain(0x13, bytes([tag, 0x02, 0, 0]) + bytes(4), peer, f)
        s.rm, s.role, s.name = b[8:24], b[24], b[28:28 + b[27]]
        remote = struct.pack('<I', s.remote_sid)
        user = self.users.get(s.name.decode('latin1'))
        status = f.get('rakp2_status', 0)
        if not status and user is None:
            status = 0x0d                                # unauthorised name
        if not status and (s.role & 0xf) > user[1]:
            status = 0x09                                # unauthorised role or privilege level
        self.log.write('rakp1 user=%r role=%02x status=%02x\n' % (s.name, s.role, status))
        if status:
            self.sessions.pop(sid, None)
            return self.plain(0x13, bytes([tag, status, 0, 0]) + remote, peer, f)
        s.kuid, s.rc = user[0].encode().ljust(20, b'\0'), os.urandom(16)
        who = bytes([s.role, len(s.name)]) + s.name
        code = hmac.new(s.kuid, remote + struct.pack('<I', s.sid) + s.rm + s.rc + GUID + who, s.h).digest()
        if f.get('bad_rakp2'):
            code = bytes(len(code))
        s.sik = hmac.new(s.kuid, s.rm + s.rc + who, s.h).digest()
        s.k1 = hmac.new(s.sik, b'\x01' * 20, s.h).digest()
        s.k2 = hmac.new(s.sik, b'\x02' * 20, s.h).digest()
        self.plain(0x13, bytes([tag, 0, 0, 0]) + remote + s.rc + GUID + code, peer, f)

    def rakp3(self, b, peer, f):
        tag, peer_status, sid = b[0], b[1], struct.unpack('<I', b[4:8])[0]
        s = self.sessions.get(sid)
        if s is None:
            return self.plain(0x15, bytes([tag, 0x02, 0, 0]) + bytes(4), peer, f)
        if peer_status:                                  # console refused our RAKP 2
            self.log.write('console status %02x\n' % peer_status)
            return self.sessions.pop(sid, None)
        remote = struct.pack('<I', s.remote_sid)
        who = bytes([s.role, len(s.name)]) + s.name
        want = hmac.new(s.kuid, s.rc + remote + who, s.h).digest()
        status = f.get('rakp4_status', 0)
        if not status and not hmac.compare_digest(want, b[8:8 + len(want)]):
            status = 0x0f                                # invalid integrity check value
        self.log.write('rakp3 status=%02x\n' % status)
        if status:
            self.sessions.pop(sid, None)
            return self.plain(0x15, bytes([tag, status, 0, 0]) + remote, peer, f)
        icv = hmac.new(s.sik, s.rm + struct.pack('<I', s.sid) + GUID, s.h).digest()[:ICV_LEN[s.algs[0]]]
        s.up, s.max_priv, s.priv = True, s.role & 0xf, min(2, s.role & 0xf)
        if f.get('bad_rakp4'):
            icv = bytes(len(icv))
        self.plain(0x15, bytes([tag, 0, 0, 0]) + remote + icv, peer, f)
        if f.get('kill_session'):
            self.sessions.pop(sid, None)

    # ---- IPMI messages --------------------------------------------------------
    def message(self, m, s, f):
        if len(m) < 7 or csum(m[:2]) != m[2] or csum(m[3:-1]) != m[-1]:
            return self.log.write('bad checksum %s\n' % m.hex())
        netfn, cmd, data = m[1] >> 2, m[5], m[6:-1]
        cc, out = self.command(netfn, cmd, data, s, f)
        self.log.write('cmd %02x/%02x %s -> %02x %s\n' % (netfn, cmd, data.hex(), cc, out.hex()))
        head = bytes([m[3], (netfn + 1) << 2 | (m[4] & 3)])
        tail = bytes([m[0], m[4] & 0xfc | (m[1] & 3), cmd, cc]) + out
        return head + bytes([csum(head)]) + tail + bytes([csum(tail)])

    def command(self, netfn, cmd, data, s, f):
        if (netfn, cmd) == (6, 0x38):                    # Get Channel Authentication Capabilities
            return 0, bytes([1, 0x80, 0x04, 0x02, 0, 0, 0, 0])
        if (netfn, cmd) == (6, 0x54):                    # Get Channel Cipher Suites, 16 bytes a page
            if f.get('no_ciphers'):
                return 0xc1, b''
            rec = b''
            for c in self.suites:
                a = ALGS[c]
                rec += bytes([0xc0, c, a[0], 0x40 | a[1], 0x80 | a[2]])
            i = (data[2] & 0x3f) * 16
            return 0, bytes([1]) + rec[i:i + 16]
        if (netfn, cmd) == (6, 0x37):                    # Get System GUID, before a session too: as in RAKP 2
            return 0, GUID
        if s is None:
            return 0xd4, b''
        if (netfn, cmd) == (6, 0x3b):                    # Set Session Privilege Level
            want = data[0] & 0xf or s.priv
            if want > s.max_priv:
                return 0x81, b''
            s.priv = want
            return 0, bytes([want])
        if (netfn, cmd) == (6, 0x3c):
            s.closing = True
            return 0, b''
        if (netfn, cmd) == (6, 0x01):
            return 0, bytes([0x20, 1, 1, 0x20, 2, 0x9f, 0x91, 0x12, 0, 2, 0x0f])
        if (netfn, cmd) == (0, 0x01):                    # Get Chassis Status
            now = self.power()
            self.note('read', now)
            return 0, bytes([now, 0, 0x40])
        if (netfn, cmd) == (0, 0x02):                    # Chassis Control
            if s.priv < 3:
                return 0xd4, b''
            if f.get('cc'):
                return f['cc'], b''
            what = data[0] & 0xf
            if what > 5 or what == 4:
                return 0xcc, b''
            if what in (2, 3) and not self.power():
                return 0xd5, b''                         # cannot cycle or reset what is off
            new = 0 if what in (0, 5) else 1
            self.note('asked', new)
            if not f.get('stuck'):
                if f.get('off_after'):
                    threading.Timer(f['off_after'] / 1000, self.power, [new]).start()
                else:
                    self.power(new)
            return 0, b''
        return 0xc1, b''


def main(argv):
    global GUID
    port, directory, suites, users, rest = int(argv[0]), argv[1], [3, 17], {}, argv[2:]
    while rest:
        opt, val, rest = rest[0], rest[1], rest[2:]
        if opt == '--suites':
            suites = [int(x) for x in val.split(',')]
        elif opt == '--guid':
            GUID = bytes.fromhex(val)
        elif opt == '--user':
            name, pw, priv = val.rsplit(':', 2)
            users[name] = (pw, int(priv))
    Bmc(port, directory, suites, users or {'admin': ('secret', 4), 'viewer': ('viewpw', 2)}).serve()


if __name__ == '__main__':
    main(sys.argv[1:])

#!/usr/bin/python3
"""Tables of PDUs and of a switch behind net-snmp's agent, which hands GET, GETNEXT and SET over line by
line (snmpd.conf: pass_persist ROOT tables.py MODEL FOLDER).

FOLDER/plugs.json  what each plug does: a list of [moment, number], of which the last one that has come counts
FOLDER/faults      words: stuck (a SET is taken and nothing happens), late=SECONDS (it happens so much later)
FOLDER/sets.log    a line for each SET that was taken
FOLDER/feeds.json  which machines hang on which plugs: {PLUG: {"chassis": FILE, "feeds": [[FOLDER, PLUG], ...]}}. A machine
                   runs while one of its feeds is on; FILE is the state of ../ipmi/chassis.sh. Not together with late.
One process for each ROOT; they share the folder.
"""
import fcntl
import json
import os
import subprocess
import sys
import time

PLUGS = range(1, 9)
APC = '1.3.6.1.4.1.318.1.1.'
EPDU = '1.3.6.1.4.1.534.6.6.7.6.'
MANAGED = '1.3.6.1.4.1.534.6.6.6.1.2.2.1.'
SWITCHED = '1.3.6.1.4.1.20677.2.6.'
CHASSIS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'ipmi', 'chassis.sh')
IF, IFX, POE = '1.3.6.1.2.1.2.2.1.', '1.3.6.1.2.1.31.1.1.1.', '1.3.6.1.2.1.105.1.1.1.'
REBOOT_S = 1.0
LINK_S = 0.4


class Plugs:
    """The state of the plugs, by name: 1 is on, 0 is off."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def faults(self):
        try:
            with open(self.path('faults')) as file:
                words = file.read().split()
        except FileNotFoundError:
            words = []
        return {word.partition('=')[0]: word.partition('=')[2] for word in words}

    def steps(self):
        try:
            with open(self.path('plugs.json')) as file:
                return json.load(file)
        except FileNotFoundError:
            return {}

    def is_on(self, name, delay=0.0):
        """Whether it is, or was some seconds ago."""
        moment, on = time.time() - delay, 1
        for begins, number in self.steps().get(name, []):
            if begins <= moment:
                on = number
        return on

    def change(self, name, steps):
        """Seconds from now, and what it is from then on."""
        faults = self.faults()
        if 'stuck' in faults:
            return
        now = time.time() + float(faults.get('late') or 0)
        with open(self.path('lock'), 'w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            all_steps = self.steps()
            before = [[0, self.is_on(name, LINK_S)], [time.time() - LINK_S / 2, self.is_on(name)]]
            all_steps[name] = before + [[now + after, number] for after, number in steps]
            with open(self.path('plugs.new'), 'w') as file:
                json.dump(all_steps, file)
            os.replace(self.path('plugs.new'), self.path('plugs.json'))
        self.supply(name)

    def feed(self, name):
        try:
            with open(self.path('feeds.json')) as file:
                return json.load(file).get(name)
        except FileNotFoundError:
            return None

    def supply(self, name):
        """Gives the machine behind a plug the power that its feeds have now."""
        feed = self.feed(name)
        if feed is None:
            return
        with open(feed['chassis'] + '.lock', 'w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            on = any(Plugs(folder).is_on(plug) for folder, plug in feed['feeds'])
            with open(feed['chassis']) as file:
                was_on = file.read().strip() != '0'
            if on != was_on:
                subprocess.run([CHASSIS, feed['chassis'], 'set', 'power', '01'[on]], check=True)

    def told(self, name):
        """Somebody was told what a plug does, and so, if it was the last one, what its machine does."""
        feed = self.feed(name)
        if feed is not None:
            subprocess.run([CHASSIS, feed['chassis'], 'get', 'power'], check=True, capture_output=True)

    def log(self, line):
        with open(self.path('sets.log'), 'a') as file:
            file.write(line + '\n')


ON, OFF, CYCLE = [[0, 1]], [[0, 0]], [[0, 0], [REBOOT_S, 1]]


def rows(model, plugs):
    """Object identifier: type, value, and what a written number does: plug and steps; None refuses."""
    found = {}

    def put(oid, kind, value, takes=None):
        found[tuple(int(arc) for arc in oid.split('.'))] = (kind, value, takes)

    def by_number(plug, **numbers):
        steps = {'on': ON, 'off': OFF, 'cycle': CYCLE}
        taken = {number: steps[word] for word, number in numbers.items()}
        return lambda number: (([plug], taken[number]) if number in taken else None)

    def by_delay(plug, steps):
        def takes(seconds):
            if seconds < -1:
                return None
            return ([plug], [[seconds + after, number] for after, number in steps] if seconds >= 0 else [])
        return takes

    for n in PLUGS:
        plug, name = str(n), 'node%d' % n
        on = plugs.is_on(plug)
        if model in ('apc-rpdu2',):
            takes = by_number(plug, on=1, off=2, cycle=3)
            put(f'{APC}26.9.2.3.1.3.{n}', 'string', name)
            put(f'{APC}26.9.2.3.1.5.{n}', 'integer', 2 if on else 1)  # PowerNet-MIB: off(1), on(2)
            put(f'{APC}26.9.2.4.1.5.{n}', 'integer', 1 if on else 2, takes)
        if model in ('apc-rpdu2', 'apc-rpdu'):
            takes = by_number(plug, on=1, off=2, cycle=3)
            put(f'{APC}12.3.3.1.1.4.{n}', 'integer', 1 if on else 2, takes)
            put(f'{APC}12.3.5.1.1.2.{n}', 'string', name)
            put(f'{APC}12.3.5.1.1.4.{n}', 'integer', 1 if on else 2)
        if model in ('apc-rpdu2', 'apc-rpdu', 'apc-ms'):
            put(f'{APC}4.4.2.1.3.{n}', 'integer', 1 if on else 2, by_number(plug, on=1, off=2, cycle=3))
            put(f'{APC}4.4.2.1.4.{n}', 'string', name)
        if model == 'apc-msp':
            put(f'{APC}6.5.1.1.5.1.1.{n}', 'integer', 1 if on else 3, by_number(plug, on=1, off=3))
            put(f'{APC}6.7.1.1.4.1.1.{n}', 'string', name)
            put(f'{APC}6.7.1.1.5.1.1.{n}', 'integer', 1 if on else 2)
        if model == 'eaton':
            put(f'{EPDU}1.1.3.0.{n}', 'string', name)
            put(f'{EPDU}6.1.2.0.{n}', 'integer', on)
            put(f'{EPDU}6.1.3.0.{n}', 'integer', -1, by_delay(plug, OFF))
            put(f'{EPDU}6.1.4.0.{n}', 'integer', -1, by_delay(plug, ON))
            put(f'{EPDU}6.1.5.0.{n}', 'integer', -1, by_delay(plug, CYCLE))
        if model == 'eaton-managed':
            put(f'{MANAGED}1.{n - 1}', 'integer', n - 1)
            put(f'{MANAGED}2.{n - 1}', 'string', name)
            put(f'{MANAGED}3.{n - 1}', 'integer', on, by_number(plug, off=0, on=1, cycle=2))
        if model == 'eaton-switched':
            put(f'{SWITCHED}2.{n + 1}.0', 'integer', 0, by_number(plug, on=1, off=2, cycle=3))
            put(f'{SWITCHED}3.{n}.0', 'integer', 1 if on else 2)
        if model == 'switch':
            index, power = 10000 + n, plugs.is_on('poe%d' % n)
            put(f'{IF}1.{index}', 'integer', index)
            put(f'{IF}2.{index}', 'string', 'GigabitEthernet1/0/%d' % n)
            put(f'{IF}7.{index}', 'integer', 1 if on else 2, by_number(plug, on=1, off=2))
            put(f'{IF}8.{index}', 'integer', 1 if plugs.is_on(plug, LINK_S) else 2)
            put(f'{IFX}1.{index}', 'string', 'Gi1/0/%d' % n)
            put(f'{IFX}18.{index}', 'string', name)
            put(f'{POE}3.1.{n}', 'integer', 1 if power else 2, by_number('poe%d' % n, on=1, off=2))
            put(f'{POE}6.1.{n}', 'integer', 3 if power else 1)
    if model == 'eaton-switched':
        everything = [str(n) for n in PLUGS]
        numbers = {1: ON, 2: OFF, 3: CYCLE}
        put(f'{SWITCHED}2.1.0', 'integer', 0,
            lambda number: (everything, numbers[number]) if number in numbers else None)
    return found


def arcs(line):
    return tuple(int(arc) for arc in line.strip().strip('.').split('.'))


def dotted(oid):
    return '.' + '.'.join(map(str, oid))


def written(table, plugs, oid, value):
    kind, _, text = value.partition(' ')
    takes = table.get(oid, (None, None, None))[2]
    if takes is None:
        return 'not-writable'
    if kind.lower() != 'integer':
        return 'wrong-type'
    done = takes(int(text))
    if done is None:
        return 'wrong-value'
    names, steps = done
    for name in names if steps else []:
        plugs.change(name, steps)
    plugs.log('%s = %s' % (dotted(oid), text))
    return 'DONE'


def main():
    model, plugs = sys.argv[1], Plugs(sys.argv[2])
    lines = iter(sys.stdin.readline, '')
    for line in lines:
        verb = line.strip().lower()
        if verb == '':
            continue  # the agent sends one more after the value of a SET
        if verb == 'ping':
            print('PONG', flush=True)
            continue
        oid, table = arcs(next(lines)), rows(model, plugs)
        if verb == 'set':
            print(written(table, plugs, oid, next(lines).strip()), flush=True)
            continue
        if verb == 'getnext':
            oid = min((later for later in table if later > oid), default=None)
        if oid in table:
            kind, value, takes = table[oid]
            if kind == 'integer' and takes is None:
                plugs.told(str(oid[-1]))
            print(dotted(oid), kind, value, sep='\n', flush=True)
        else:
            print('NONE', flush=True)


main()

"""A relay board to try the plugin on: relays 1 to 4, all on.

  python3 device.py 127.0.0.1:9700 secret

"1 get 2 CODE" is answered "1 2 on"; "2 off 2 CODE" switches. CODE is the HMAC-SHA-256 of what is before it, with the
password as key. What has another one gets no answer. Standard library only.
"""

import hashlib
import hmac
import socket
import sys

address, password = sys.argv[1:3]
host, port = address.rsplit(":", 1)
board = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
board.bind((host, int(port)))
relays = {str(number): "on" for number in range(1, 5)}

while True:
    data, peer = board.recvfrom(2048)
    question, _, code = data.decode(errors="replace").rpartition(" ")
    wanted = hmac.new(password.encode(), question.encode(), hashlib.sha256).hexdigest()
    words = question.split(" ")
    if len(words) != 3 or words[2] not in relays or not hmac.compare_digest(code, wanted):
        continue
    number, verb, relay = words
    if verb in ("on", "off"):
        relays[relay] = verb
    board.sendto(f"{number} {relay} {relays[relay]}".encode(), peer)

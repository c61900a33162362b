"""Runs a command and writes down every byte that goes in and comes out.

    tap.py FOLDER SIDE -- COMMAND...

FOLDER/SIDE.PROCESS.in and .out hold them. PROCESS is the proxy's: the command's own on the
side of the host, this program's parent on the side of the server.
"""
import os
import subprocess
import sys
import threading


def copy(source, target, path):
    with open(path, "wb", buffering=0) as written:
        while piece := os.read(source, 65536):
            written.write(piece)
            try:
                view = memoryview(piece)
                while view:
                    view = view[os.write(target, view):]
            except BrokenPipeError:
                # Nobody takes it; what comes is written down all the same.
                pass
    os.close(target)


def main():
    folder, side, _, *command = sys.argv[1:]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    proxy = process.pid if side == "host" else os.getppid()
    path = os.path.join(folder, f"{side}.{proxy}")
    # A host that never closes our input must not keep us.
    threading.Thread(target=copy, args=(0, process.stdin.fileno(), path + ".in"), daemon=True).start()
    copy(process.stdout.fileno(), 1, path + ".out")
    status = process.wait()
    os._exit(128 - status if status < 0 else status)


main()

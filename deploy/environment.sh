#!/bin/sh
# Makes .venv hold what a hashed lock names; does nothing where it already does.
# Usage, from the root of the checkout: deploy/environment.sh run|dev. PYTHON names the interpreter of a new .venv.
set -eu
lock=deploy/requirements/$1.txt
environment=.venv
# A stamp with the lock's checksum tells that the last installation was of this lock, and came to its end.
stamp="$environment/.$1-$(cksum < "$lock" | cut -d' ' -f1)"
[ ! -e "$stamp" ] || exit 0

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null
}
if ! new_enough "$environment/bin/python"; then
    for python in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11 ""; do
        if [ -z "$python" ]; then
            echo "Python 3.11 or newer is needed; name it with PYTHON=/path/to/python3" >&2
            exit 1
        fi
        ! new_enough "$python" || break
    done
    "$python" -m venv --clear "$environment"
fi
echo "installing $lock into $environment" >&2
"$environment/bin/python" -c 'import pip' 2> /dev/null || "$environment/bin/python" -m ensurepip > /dev/null
rm -f "$environment/.$1-"*
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
touch "$stamp"

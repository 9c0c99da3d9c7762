#!/bin/bash
# Product: PHP 8.2.36 (php-cli of Debian 12), $_COOKIE.
# Guess:   The first cookie of a name wins, as in "session=K; session=L".
#          So "session=K; session[x]=L" gives the text K.
# Happens: session is the array {"x":"L"} and K is dropped, in either order.
# Follows: A limiter in front of PHP that keys on the cookie "session" reads K,
#          while the application reads an array. The limiter counts a user that
#          the application does not know. A limiter should treat session and
#          session[...] as one name, or key on what the application verified.
set -eu
want='{"session":"K"} {"session":{"x":"L"}} {"session":{"x":"L"}}'
dir=$(mktemp -d) pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$dir"' EXIT
cd "$dir"
echo "version: $(php -r 'echo PHP_VERSION;') (seen with 8.2.36)"
echo '<?php echo json_encode($_COOKIE);' >index.php
port=$(php -r '$s=stream_socket_server("tcp://127.0.0.1:0"); echo explode(":",stream_socket_get_name($s,false))[1];')
php -n -S "127.0.0.1:$port" index.php >log 2>&1 &
pid=$!
for _ in $(seq 100); do curl -s -o first "http://127.0.0.1:$port/" && break; sleep 0.1; done
got=
for cookie in 'session=K; session=L' 'session=K; session[x]=L' 'session[x]=L; session=K'; do
	json=$(curl -s -H "Cookie: $cookie" "http://127.0.0.1:$port/")
	echo "Cookie: $cookie  ->  $json"
	got="$got $json"
done
[ "${got# }" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: session[x] replaces session, whichever comes first"

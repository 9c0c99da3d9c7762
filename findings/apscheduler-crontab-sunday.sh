#!/bin/bash
# Product: APScheduler 3.9.1 (python3-apscheduler of Debian 12), CronTrigger.from_crontab.
# Guess:   from_crontab('0 0 * * 0') fires on Sundays, as cron does. The method exists to
#          take the expressions of crontab.
# Happens: 0 is Monday, and 6 is Sunday. 7, which cron also takes for Sunday, is an error.
#          The names sun and mon mean what they say.
# Follows: A schedule that resets quotas, or raises limits on the days from Monday to Friday
#          ('1-5'), acts one day late: from Tuesday to Saturday. Write names of days.
set -eu
want='0: Monday; sun: Sunday; 1-5 begins on Tuesday; 7: ValueError'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
# Unpacked here, not installed: the machine's own packages stay as they are.
chmod 755 . && apt-get download -q python3-apscheduler python3-tz python3-tzlocal python3-pytz-deprecation-shim python3-six python3-pkg-resources >log 2>&1 || { cat log; exit 1; }
for deb in *.deb; do dpkg-deb -x "$deb" root; done
cat >run.py <<'PY'
import datetime, sys
sys.path.insert(0, "root/usr/lib/python3/dist-packages")
import apscheduler, pytz
from apscheduler.triggers.cron import CronTrigger

def first(days):
    """The day of the first run after Saturday, November 28th 2026."""
    begin = datetime.datetime(2026, 11, 28, 12, tzinfo=pytz.utc)
    try:
        return CronTrigger.from_crontab("0 0 * * " + days, timezone=pytz.utc).get_next_fire_time(None, begin).strftime("%A")
    except ValueError:
        return "ValueError"

print("version: APScheduler %s (seen with 3.9.1)" % apscheduler.__version__, file=sys.stderr)
print("0: %s; sun: %s; 1-5 begins on %s; 7: %s" % (first("0"), first("sun"), first("1-5"), first("7")))
PY
got=$(/usr/bin/python3 run.py)
echo "seen: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: days of the week are one later than in crontab"

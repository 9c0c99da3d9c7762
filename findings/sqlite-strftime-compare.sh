#!/bin/bash
# Product: SQLite 3.40.1 of Debian 12.
# Guess:   at is an integer column of Unix times. at > strftime('%s','now') - 60 and
#          at + 60 > strftime('%s','now') count the same rows: those of the last minute.
# Happens: strftime gives text. A bare column converts the text to a number, an expression
#          such as at + 60 does not, and any number is less than any text. So the
#          second form counts no row, and its reverse finds each row expired.
# Follows: A sliding window that is written in the second form admits everything, and a
#          cleanup deletes the rows that still count, both without an error. Write
#          unixepoch(), or CAST(strftime('%s','now') AS INTEGER).
set -eu
want='at > now - 60: 3 of 3; at + 60 > now: 0 of 3; expired, at + 60 <= now: 3 of 3; at + 60 > unixepoch(): 3 of 3'
got=$(sqlite3 :memory: "
create table hits (at integer not null);
insert into hits values (unixepoch()), (unixepoch()), (unixepoch());
select 'at > now - 60: ' || (select count(*) from hits where at > strftime('%s','now') - 60) || ' of 3; '
    || 'at + 60 > now: ' || (select count(*) from hits where at + 60 > strftime('%s','now')) || ' of 3; '
    || 'expired, at + 60 <= now: ' || (select count(*) from hits where at + 60 <= strftime('%s','now')) || ' of 3; '
    || 'at + 60 > unixepoch(): ' || (select count(*) from hits where at + 60 > unixepoch()) || ' of 3'")
echo "version: SQLite $(sqlite3 --version | cut -d' ' -f1) (seen with 3.40.1)"
echo "three rows of this second: $got"
[ "$got" = "$want" ] || { echo "CHANGED: expected $want"; exit 1; }
echo "behaviour: the form of the comparison decides between all rows and none"

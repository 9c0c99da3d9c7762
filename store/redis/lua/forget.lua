-- Forgets what is counted under one name, as if the key had never been seen.
--
-- KEYS  the state, and the list that it has if it is a sliding log.
-- Receipts from before must give nothing back. So what is left, for as long as a
-- receipt may be worth anything, is a bucket of another rate, which each limit
-- carries over as an empty one; or a log that is empty and decides after the last
-- of its old entries, since a receipt finds its entry by the time.
-- Gives 1 if there was anything to forget, else 0.
local b, log = load_bucket(KEYS[1]), load_log(KEYS[1], KEYS[2])
redis.call('DEL', KEYS[2])
if b then
  b.tat, b.part, b.whole, b.frac, b.den, b.most = 0, 0, 0, 0, 1, 0
  redis.call('SET', KEYS[1], pack_bucket(b), 'KEEPTTL')
elseif log then
  log.units, log.newest, log.trimmed = 0, log.newest + 1, 0
  redis.call('SET', KEYS[1], pack_log(log), 'KEEPTTL')
else
  return redis.call('DEL', KEYS[1])
end
return 1

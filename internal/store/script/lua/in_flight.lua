-- Takes, renews or frees slots of requests in flight under one key.
--
-- KEYS  a sorted set: each member is a slot, and its score is the time at which it is free
--       unless it is renewed.
-- ARGV  the time and the slack as for a decision; 'take', 'peek', 'renew' or 'free'; the time to live
--       of a slot in microseconds; for take, the limit; the slots.
-- The result of take is the number of taken slots, with this one, or -1 minus their number if
-- no slot was free. That of peek is one of these too. The others give a number without a meaning.
local key, what, ttl = KEYS[1], ARGV[3], tonumber(ARGV[4])

-- keep keeps the key as long as its last slot. Slots may have different times to live.
local function keep()
  local ms = ceil(ttl / 1000) + slack
  if call('PTTL', key) < ms then
    call('PEXPIRE', key, format('%.0f', ms))
  end
end

if what == 'free' then
  return call('ZREM', key, unpack(ARGV, 6))
end
local free_at = format('%.0f', now + ttl)
if what == 'renew' then
  -- A slot that the server has lost comes back, although others may have taken its place.
  for i = 6, #ARGV do
    call('ZADD', key, free_at, ARGV[i])
  end
  keep()
  return 0
end
call('ZREMRANGEBYSCORE', key, '-inf', format('%.0f', now))
local taken = call('ZCARD', key)
if what == 'peek' then
  return -1 - taken
elseif call('ZSCORE', key, ARGV[6]) then
  return taken -- The client has sent this call again.
elseif taken >= tonumber(ARGV[5]) then
  return -1 - taken
end
call('ZADD', key, free_at, ARGV[6])
keep()
return taken + 1

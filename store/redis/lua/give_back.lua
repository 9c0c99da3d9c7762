-- Gives back what one receipt took, once.
--
-- KEYS  the state, the note that the receipt was returned, and for a log its list.
-- ARGV  the time and the slack as for a decision; the limit that the receipt was
--       taken under, as Prepare packed it; and the receipt:
--       bucket  cost; where its units end; the time of its cost; returned
--       log     cost; its time
-- Gives 1 if the receipt was noted as returned now, else 0.

-- note reports whether the receipt comes for the first time. The note is kept for
-- as long as the receipt could give anything back.
local function note(now, slack, useless_at)
  local ttl = math.ceil((useless_at - now) / 1000) + slack
  return redis.call('SET', KEYS[2], '', 'NX', 'PX', ttl)
end

-- return_departure gives a departure back if it is the last one booked: those who
-- wait behind another keep their times.
local function return_departure(b, ends, ends_part, took, took_part)
  if b.tat == ends and b.part == ends_part then
    b.tat, b.part = subtract(ends, ends_part, took, took_part, b.den)
    redis.call('SET', b.key, pack_bucket(b), 'KEEPTTL')
  end
  return 1
end

-- return_tokens gives back what of the receipt has not refilled. limit/bucket.go
-- says why that is never too much, and docs/algorithms.md proves it. The times of a
-- receipt of another rate say nothing of this state.
local function return_tokens(now, slack)
  local cost, ends, ends_part, took, took_part, returned = struct.unpack('<dddddd', ARGV[4])
  local kind, whole, frac, den, refill, refill_part, max_wait = struct.unpack(BUCKET_LIMIT, ARGV[3])
  local b = load_bucket(KEYS[1])
  if not b or b.whole ~= whole or b.frac ~= frac or b.den ~= den then
    return 0
  end
  if not after(ends, ends_part, now, 0) or not note(now, slack, ends + 1) then
    return 0 -- All of it has refilled, or is returned.
  end
  if max_wait > 0 and after(b.tat, b.part, now + refill, refill_part) then
    return return_departure(b, ends, ends_part, took, took_part)
  end
  local since = (b.returned - returned) % 4294967296
  b.returned = (b.returned + cost) % 4294967296
  if since <= b.most then
    local us, part = span_of(since, whole, frac, den)
    us, part = subtract(ends, ends_part, us, part, den)
    us, part = subtract(us, part, now, 0, den)
    if after(us, part, took, took_part) then
      us, part = took, took_part
    end
    if after(us, part, 0, 0) then
      b.tat, b.part = subtract(b.tat, b.part, us, part, den)
    end
  end
  redis.call('SET', b.key, pack_bucket(b), 'KEEPTTL')
  return 1
end

-- find gives the place of the entry of a time, in entries, or nothing. A list has no
-- way in but by place: the search reads the logarithm of its length.
local function find(log, at)
  local low, high = 0, redis.call('LLEN', log.list) / 2
  while low < high do
    local middle = math.floor((low + high) / 2)
    if redis.call('LINDEX', log.list, 2 * middle) + log.base < at then
      low = middle + 1
    else
      high = middle
    end
  end
  local found = redis.call('LINDEX', log.list, 2 * low)
  if found and found + log.base == at then
    return low
  end
end

-- remove closes the gap of an entry that has no units left. Most returns are of late
-- takes, so it searches from the newest.
local function remove(log, place)
  redis.call('LSET', log.list, 2 * place, '')
  redis.call('LSET', log.list, 2 * place + 1, '')
  redis.call('LREM', log.list, -2, '')
  local last = redis.call('LINDEX', log.list, -2)
  if last then
    log.newest = log.base + last
  end
end

-- return_to_log takes the units of the receipt out of the entry of their time.
-- While units that were trimmed would still count nothing is returned: they stand in for it.
local function return_to_log(now, slack)
  local cost, at = struct.unpack('<dd', ARGV[4])
  local kind, count, per = struct.unpack(LOG_LIMIT, ARGV[3])
  local log = load_log(KEYS[1], KEYS[3])
  if not log or at + per <= now or not note(now, slack, at + per) then
    return 0
  end
  local place = find(log, at)
  if not place or log.trimmed > 0 and log.trimmed > now - log.per then
    return 1
  end
  local units = tonumber(redis.call('LINDEX', log.list, 2 * place + 1))
  log.units = log.units - math.min(units, cost)
  if units > cost then
    redis.call('LSET', log.list, 2 * place + 1, units - cost)
  else
    remove(log, place)
  end
  if log.units == 0 then
    redis.call('DEL', log.key, log.list)
  else
    redis.call('SET', log.key, pack_log(log), 'KEEPTTL')
  end
  return 1
end

local now, slack = tonumber(ARGV[1]), tonumber(ARGV[2])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
if string.byte(ARGV[3]) == LOG then
  return return_to_log(now, slack)
end
return return_tokens(now, slack)

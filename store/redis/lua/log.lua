-- sliding_log: every counted unit with its time, the twin of limit/log.go.
--
-- The entries are a Redis list, oldest first, two numbers an entry: its time
-- after base, and its units. The state beside it is one string:
--   base       what the times in the list count from; a long step back of the
--              clock moves it, and all entries with it
--   units      the sum of the units in the list: never above the limit's count
--   newest     the time of the last entry
--   trimmed    the time of the newest unit dropped before it left the window
--   per        the window that it was last kept for
local LOG_STATE = '<Bddddd'
local LOG_LIMIT = '<Bddd'
local LOG = 3

-- A window is read in runs that grow, so that a look at one entry reads one, and a
-- thousand entries are a few calls.
local LONGEST_RUN = 512

-- shed drops the oldest entries: those of gone and before, which have left the
-- window, and then as many units as are more than the limit's count.
local function shed(log, gone)
  if log.newest <= gone then
    redis.call('DEL', log.list)
    log.units, log.moved = 0, true
    return
  end
  local size = 1
  while log.units > 0 do
    local run = redis.call('LRANGE', log.list, 0, 2 * size - 1)
    local dropped = 0
    for i = 1, #run, 2 do
      local at, units = log.base + run[i], tonumber(run[i + 1])
      if at > gone then
        local excess = log.units - log.count
        if excess <= 0 then
          break
        end
        log.trimmed, log.moved = at, true
        if units > excess then
          redis.call('LSET', log.list, i, units - excess)
          log.units = log.count
          break
        end
      end
      log.units, dropped, log.moved = log.units - units, dropped + 2, true
    end
    if dropped > 0 then
      redis.call('LTRIM', log.list, dropped, -1)
    end
    if dropped < #run then
      return
    end
    if #run < 2 * size then
      log.units = 0 -- The list is empty; units that are left were evicted with it.
    end
    size = math.min(4 * size, LONGEST_RUN)
  end
end

-- load_log reads the log of a key, or gives nothing.
local function load_log(name, list)
  local raw = redis.call('GET', name)
  if not raw or string.byte(raw) ~= LOG then
    return nil
  end
  local log, kind = { key = name, list = list }, nil
  kind, log.base, log.units, log.newest, log.trimmed, log.per = struct.unpack(LOG_STATE, raw)
  return log
end

-- open_log gives the log of a key at now, under the limit in words, and sets the time
-- to decide at. A clock that stepped back by up to a window is held at the newest
-- entry; after a longer step the entries move to the present with it.
local function open_log(name, list, now, words)
  local kind, count, per, counts = struct.unpack(LOG_LIMIT, words)
  local log = load_log(name, list)
  if not log then
    if redis.call('EXISTS', list) == 1 then
      redis.call('DEL', list) -- It is left over from a state that was evicted.
    end
    return { key = name, list = list, at = now, base = now, units = 0, newest = now, trimmed = 0,
      count = count, per = per, counts = counts }
  end
  log.count, log.per, log.counts = count, per, counts
  local ahead = log.newest - now
  if ahead > per then
    log.base, log.newest, log.trimmed, log.moved = log.base - ahead, now, log.trimmed - ahead, true
  end
  log.at = math.max(now, log.newest)
  shed(log, log.at - per)
  return log
end

-- append counts units at a time that is not before the newest entry's.
local function append(log, at, units)
  if units == 0 then
    return
  end
  if log.units == 0 then
    log.base = at
  end
  if log.units > 0 and log.newest == at then
    redis.call('LSET', log.list, -1, redis.call('LINDEX', log.list, -1) + units)
  else
    redis.call('RPUSH', log.list, at - log.base, units)
  end
  log.units, log.newest, log.moved = log.units + units, at, true
  if log.units > log.count then
    shed(log, -1)
  end
end

-- leaves_at gives the time at which n of the kept units have left the window.
local function leaves_at(log, n)
  local from, size = 0, 1
  while true do
    local run = redis.call('LRANGE', log.list, from, from + 2 * size - 1)
    for i = 1, #run, 2 do
      n = n - run[i + 1]
      if n <= 0 then
        return log.base + run[i] + log.per
      end
    end
    if #run < 2 * size then
      return log.newest + log.per
    end
    from, size = from + 2 * size, math.min(4 * size, LONGEST_RUN)
  end
end

local function pack_log(log)
  return struct.pack(LOG_STATE, LOG, log.base, log.units, log.newest, log.trimmed, log.per)
end

-- save_log writes the state; without units there is none.
local function save_log(log, now, slack)
  if log.units == 0 then
    redis.call('DEL', log.key, log.list)
    return
  end
  local ttl = math.max(math.ceil((log.newest + log.per - now) / 1000), 0) + slack
  redis.call('SET', log.key, pack_log(log), 'PX', ttl)
  redis.call('PEXPIRE', log.list, ttl)
end

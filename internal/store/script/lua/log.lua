-- sliding_log: every counted unit with its time, the same steps as internal/limit/log.go.
--
-- A state of a log without a debt is '<BddddddddI2I2' (algorithm, version, base, units, newest, trimmed, per, most,
-- most_at, chunks, length of the front), and then entries of '<I7I3': the time since base,
-- and units.
--   base       the origin of the times of entries; a long step back of the clock moves base,
--              and so all entries
--   units      the sum of all entries
--   newest     the time of the last entry
--   trimmed    the time of the newest unit that was dropped before it left the window
--   per        the length of the window
--   most       the largest count of policies that recently counted units
--   most_at    the last time at which a policy with the count most counted units; until one
--              period later, a policy with a smaller count drops no units up to most
-- A log with a debt has another first byte, and its debt as '<d' at the end: the units that count as
-- soon as they fit.
-- The entries are in three places: the front (the oldest entries), the chunks of a separate
-- list, and the back (the newest entries). A short log needs no list. A long log reads or
-- writes its list once for many decisions. A chunk is the sum of its units as '<I4', and then
-- its entries. While the log has chunks, front and back are not empty.
local function logs(env)
  local unpack_, pack, byte, sub, floor, min, max = struct.unpack, struct.pack, string.byte, string.sub, math.floor, math.min, math.max
  local now, base, states, due, out = env.now, env.base, env.states, env.due, env.out
  local OVER, PEEK = env.OVER, env.PEEK

  local LOG, LOG_HEAD, ENTRY, PLAIN, OWING = '<BddddddddI2I2', 69, '<I7I3', 3, 10
  local BACK_FULL = 640 -- The size in bytes at which the back moves to the front or to the list.

  local function log_policy(raw)
    local kind, count, per, counts, owe = unpack_('<BddBd', raw)
    return { kind = kind, count = count, owe = owe, per = per, counts = counts == 1, algorithm = false }
  end

  local function load_log(log, raw)
    if not raw or byte(raw) ~= PLAIN and byte(raw) ~= OWING or #raw < LOG_HEAD then
      return false
    end
    log.owed = 0
    if byte(raw) == OWING then
      log.owed, raw = unpack_('<d', raw, #raw - 7), sub(raw, 1, -9)
    end
    local kind, length
    kind, log.version, log.base, log.units, log.newest, log.trimmed, log.per, log.most, log.most_at, log.chunks, length =
      unpack_(LOG, raw)
    log.front = sub(raw, LOG_HEAD + 1, LOG_HEAD + length)
    log.back = sub(raw, LOG_HEAD + 1 + length)
    log.first = 0 -- The index of the oldest chunk that is still in the window.
    return true
  end

  local function pack_log(log)
    local kind, owed = PLAIN, ''
    if log.owed > 0 then
      kind, owed = OWING, pack('<d', log.owed)
    end
    return pack(LOG, kind, log.version, log.base, log.units, log.newest, log.trimmed, log.per, log.most, log.most_at,
      log.chunks, #log.front) .. log.front .. log.back .. owed
  end

  local long

  -- rarely makes the functions of long.lua, which few decisions need.
  local function rarely()
    long = long or long_logs(env)
    return long
  end

  -- refill fills the empty front with the oldest remaining entries, and gives them; it gives
  -- false if there are none. It skips chunks that have only entries up to the time gone.
  local function refill(log, gone)
    if log.chunks == 0 or not rarely().load_front(log, gone) then
      log.front, log.back = log.back, ''
    end
    return log.front ~= '' and log.front
  end

  -- shed drops the entries up to the time gone, because they have left the window.
  local function shed(log, gone)
    if log.newest <= gone then
      log.units, log.first, log.chunks, log.front, log.back = 0, log.first + log.chunks, 0, '', ''
      log.moved = true
      return
    end
    gone = gone - log.base
    local entries = log.front ~= '' and log.front or refill(log, gone)
    while entries do
      local from, length = 1, #entries
      while from <= length do
        local at, units, to = unpack_(ENTRY, entries, from)
        if at > gone then
          if from > 1 then
            log.front, log.moved = sub(entries, from), true
          end
          return
        end
        log.units, from = log.units - units, to
      end
      log.moved = true
      entries = refill(log, gone)
    end
    log.units = 0
  end

  -- append adds units at a time that is not before the newest entry.
  local function append(log, at, units)
    if log.units == 0 then
      log.base, log.front, log.back = at, '', ''
    elseif log.newest == at then
      local entries = log.back ~= '' and log.back or log.front
      local when, before = unpack_(ENTRY, entries, #entries - 9)
      entries = sub(entries, 1, -11) .. pack(ENTRY, when, before + units)
      if log.back ~= '' then
        log.back = entries
      else
        log.front = entries
      end
      log.units = log.units + units
      return
    end
    log.back = log.back .. pack(ENTRY, at - log.base, units)
    log.units, log.newest = log.units + units, at
  end

  -- open_log loads the log of a key, drops expired entries, and sets the time of the decision.
  -- After the clock stepped back by at most one window, the log decides at the time of its
  -- newest entry. After a longer step, the entries move back with the clock.
  local function open_log(log)
    local p, raw = log.policy, states[log.key]
    log.list = log.list or KEYS[log.key] .. ':l'
    if not load_log(log, raw) then
      log.version, log.base, log.units, log.newest, log.trimmed, log.per = born(raw, now), now, 0, now, 0, p.per
      log.chunks, log.first, log.front, log.back, log.at, log.used, log.most, log.most_at = 0, 0, '', '', now, 0, 0, 0
      log.moved = env.replaces(raw)
      return
    end
    local ahead = log.newest - now
    if log.units > 0 and ahead > p.per then
      log.base, log.newest, log.trimmed = log.base - ahead, now, max(log.trimmed - ahead, 0)
      log.most_at = max(log.most_at - ahead, 0)
      log.version, log.moved, log.shifted = later(log.version), true, true
    end
    log.at = now
    if log.units > 0 then
      log.at = max(now, log.newest)
    end
    if log.owed > 0 then
      rarely().pay(log, append, refill)
    end
    if log.units > 0 then
      shed(log, log.at - p.per)
    end
    log.used = min(log.units, p.count) -- A larger count or counted refusals may have left more units than p.count.
  end

  -- leaves_at gives the time at which n units of the log and of its debt have left the window. A unit
  -- of the debt leaves one window after the unit whose place it takes.
  local function leaves_at(log, n)
    local count = log.policy.count
    if n <= log.units or log.owed == 0 then
      return rarely().leaves_at(log, n)
    end
    n = n - log.units
    local windows = floor((n - 1) / count)
    return rarely().leaves_at(log, log.units - count + n - windows * count) + (windows + 1) * log.per
  end

  -- empty_at gives the time at which all units have left the window.
  local function empty_at(log)
    if log.owed > 0 then
      return leaves_at(log, log.units + log.owed)
    end
    return log.newest + log.per
  end

  -- save_log writes the log. It stays until due_at, at least.
  local function save_log(log, due_at)
    log.due = due_at
    if log.first > 0 or log.shifted or #log.back >= BACK_FULL then
      rarely().save_list(log)
    end
    states[log.key], due[log.key] = pack_log(log), due_at - base
  end

  -- refund_log removes the newest units. While trimmed units would still count, it removes
  -- nothing: they take the place of the removed units.
  local function refund_log(log)
    local p = log.policy
    if min(log.cost, log.units + log.owed) == 0 or log.trimmed > 0 and log.trimmed > log.at - log.per then
      return
    end
    local owed = min(log.cost, log.owed)
    log.owed = log.owed - owed
    rarely().drop_newest(log, min(log.cost - owed, log.units))
    log.version = later(log.version)
    save_log(log, empty_at(log))
    log.at, log.used = now, min(log.units, p.count)
    if log.units > 0 then
      log.at = max(now, log.newest)
    end
  end

  -- keep_most drops the units beyond the largest count in use.
  local function keep_most(log)
    local p = log.policy
    log.moved = true
    if p.count >= log.most or log.at >= log.most_at + log.per then
      log.most, log.most_at = p.count, log.at
    end
    if log.units > log.most then
      rarely().trim(log, log.most, refill)
    end
  end

  -- charge_log counts up to the cost, until the log owes the overdraft.
  local function charge_log(log)
    local p = log.policy
    local units = p.count > 0 and max(0, min(log.cost, p.count + p.owe - log.units - log.owed)) or 0
    if units > 0 then
      local fits = max(0, min(units, p.count - log.units))
      if fits > 0 then
        append(log, log.at, fits)
      end
      log.owed, log.shifted = log.owed + units - fits, true -- Its list expires later.
      keep_most(log)
      save_log(log, empty_at(log))
      log.used = min(log.units, p.count)
    end
    return units
  end

  local function settle_log(log, all, possible)
    local p = log.policy
    if log.cost > 0 and log.mode ~= PEEK and (all or possible and p.counts) then
      append(log, log.at, log.cost)
      keep_most(log)
    end
    local retry, reset = 0, 0
    if log.code == OVER then
      retry = leaves_at(log, log.units + log.owed + log.cost - p.count) - now
    end
    if log.units > 0 then
      reset = empty_at(log) - now
    end
    local o = env.o
    out[o + 1], out[o + 2], out[o + 3], out[o + 4], out[o + 5] = log.at - now, log.used, retry, reset, log.version
    env.o = o + 5
    if log.moved and log.mode ~= PEEK then
      save_log(log, now + reset)
    end
  end

  return {
    policy = log_policy, open = open_log, judge = env.judge_units, settle = settle_log, refund = refund_log,
    charge = charge_log, room_at = env.units_left, load = load_log, pack = pack_log,
  }
end

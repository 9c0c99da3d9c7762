-- Returns the units of one receipt, at most once.
--
-- KEYS  the state; the note that the receipt was returned; for a log, its list.
-- ARGV  the time and the slack as for a decision; the policy of the take; the receipt (cost,
--       time, part, version); and optionally 'last', to return only the last booking of a
--       bucket, or 'undo', for the take of a group that was refused elsewhere.
-- The result is 1 if this call recorded the return in the note, and 0 otherwise.
local cost, from, from_part, version = unpack_('<dddd', ARGV[4])
local raw = call('GET', KEYS[1])
local env = surroundings(now, base, how, slack, {}, {}, {}, 0)
local min, byte, sub = math.min, string.byte, string.sub

-- note records the return, and reports whether it is the first for this receipt. The note
-- expires when the receipt has no units to return any more.
local function note(useless_at)
  local ms = ceil((useless_at - base) / 1000) + slack
  return call('SET', KEYS[2], '', 'NX', how, format('%.0f', ms))
end

local function save(packed)
  call('SET', KEYS[1], packed, 'KEEPTTL')
  return 1
end

local function return_to_bucket()
  local bucket = buckets(env)
  local load_bucket, pack_bucket = bucket.load, bucket.pack
  local add, subtract, after, span_of, _, units_in = numbers()

  -- return_departure returns a departure if it is the last booking. Otherwise nothing
  -- changes, because later waiters keep their departures.
  local function return_departure(b, p, last, last_part, took, took_part)
    if b.tat == last and b.part == last_part then
      b.tat, b.part = subtract(last, last_part, took, took_part, b.den)
      return save(pack_bucket(b, p.kind))
    end
    return 1
  end

  -- return_tokens returns the units of the receipt that have not refilled yet, and counts them
  -- in the version. internal/limit/bucket.go says why this is never too much, and docs/algorithms.md has
  -- the proof.
  local function return_tokens(b, p, last, last_part, took, took_part, since)
    if since > p.most then
      return 1
    end
    local us, part = span_of(since, p.whole, p.frac, p.den)
    us, part = subtract(last, last_part, us, part, p.den)
    us, part = subtract(us, part, now, 0, p.den)
    if not after(us, part, 0, 0) then
      return 1
    end
    local units, rest = cost, 0
    if after(us, part, took, took_part) then
      us, part = took, took_part
    else
      units, rest = units_in(us, part, p.den, p.num)
    end
    b.version = (b.version + min(rest > 0 and units + 1 or units, EPOCH)) % VERSIONS
    b.tat, b.part = subtract(b.tat, b.part, us, part, b.den)
    return save(pack_bucket(b, p.kind))
  end

  local p, b = bucket.policy(ARGV[3]), {}
  if not load_bucket(b, raw, p) or b.whole ~= p.whole or b.frac ~= p.frac or b.den ~= p.den then
    return 0
  end
  if p.frac == 0 and b.part > 0 then -- The receipt has the time rounded up.
    from, from_part = from - 1, b.part
  end
  local since = (b.version - version) % VERSIONS
  local took, took_part = span_of(cost, p.whole, p.frac, p.den)
  local last, last_part = add(from, from_part, took, took_part, p.den)
  local only_last = ARGV[5] == 'last'
  if only_last and (b.tat ~= last or b.part ~= last_part) then
    return 0 -- There is no note, because the booking may become the last one.
  end
  if since >= EPOCH or p.leaky and since > 0 or not after(last, last_part, now, 0) or not note(last + 1) then
    return 0 -- The receipt is invalid or already returned, or its units have refilled.
  end
  -- A take that is undone before another take of its bucket leaves no trace: the return counts
  -- as no returned units, which would lower other returns.
  local undone = ARGV[5] == 'undo' and since == 0 and b.tat == last and b.part == last_part
  if only_last or undone or p.leaky or p.max_wait > 0 and after(b.tat, b.part, now + p.refill, p.refill_part) then
    return return_departure(b, p, last, last_part, took, took_part)
  end
  return return_tokens(b, p, last, last_part, took, took_part, since)
end

local function return_to_fixed()
  local fixed = fixed_windows(env)
  local p, w = fixed.policy(ARGV[3]), {}
  if not fixed.load(w, raw) or w.version ~= version or w.per ~= p.per or from < w.start or from >= w.start + p.per
    or w.start + p.per <= now or not note(w.start + p.per) then
    return 0
  end
  w.units = w.units - min(w.units, cost)
  return save(fixed.pack(w))
end

local function return_to_calendar()
  local calendar = calendar_windows(env)
  local p, w = calendar.policy(ARGV[3]), {}
  if not calendar.load(w, raw) or w.version ~= version or from + p.longest <= now or not calendar.give_back(w, from, cost)
    or not note(from + p.longest) then
    return 0
  end
  return save(calendar.pack(w))
end

local function return_to_window()
  local window = sliding_windows(env)
  local p, w = window.policy(ARGV[3]), {}
  if not window.load(w, raw) or w.version ~= version or w.per ~= p.per then
    return 0
  end
  local out_at, counted = 0, {}
  for n, r in ipairs(w.rings) do
    local k = window.place_of(from, w.per, r.n)
    local i = k - r.newest + r.n
    if i >= 0 and i <= r.n then
      out_at, counted[n] = math.max(out_at, window.start_of(k + r.n + 1, w.per, r.n)), i
    end
  end
  if out_at <= now or not note(out_at) then
    return 0
  end
  for n, i in pairs(counted) do
    local r = w.rings[n]
    local units = window.counter(r, i)
    local left = units - min(units, cost)
    r.total = r.total - (units - left)
    if i == r.n then
      r.current = left
    else
      r.body = sub(r.body, 1, 8 * i) .. pack('<d', left) .. sub(r.body, 8 * i + 9)
    end
  end
  return save(window.pack(w))
end

local function return_to_log()
  local sliding = logs(env)
  local long = long_logs(env)
  local load_log, pack_log, chunk, mend, ENTRY = sliding.load, sliding.pack, long.chunk, long.mend, long.entry

  -- without removes the receipt's units from the entry of its time. It gives the remaining
  -- entries and the number of removed units, which is nil if there is no such entry.
  local function without(entries, first, at)
    local low, high = 0, (#entries - first + 1) / 10
    while low < high do
      local middle = floor((low + high) / 2)
      if (unpack_('<I7', entries, first + 10 * middle)) < at then
        low = middle + 1
      else
        high = middle
      end
    end
    local from = first + 10 * low
    if from > #entries or (unpack_('<I7', entries, from)) ~= at then
      return entries
    end
    local when, units = unpack_(ENTRY, entries, from)
    local left = units - min(units, cost)
    local entry = left > 0 and pack(ENTRY, at, left) or ''
    return sub(entries, 1, from - 1) .. entry .. sub(entries, from + 10), units - left
  end

  -- find_chunk gives the index of the oldest chunk that ends at or after at, if any. The
  -- binary search reads log2(chunks) chunks.
  local function find_chunk(log, at)
    local low, high = 0, log.chunks
    while low < high do
      local middle = floor((low + high) / 2)
      local raw = chunk(log, middle)
      if not raw then
        return nil
      elseif (unpack_('<I7', raw, #raw - 9)) < at then
        low = middle + 1
      else
        high = middle
      end
    end
    return low < log.chunks and low
  end

  local function return_to_chunk(log, at)
    local i = find_chunk(log, at)
    if not i then
      return nil
    end
    local raw = chunk(log, i)
    local entries, units = without(sub(raw, 5), 1, at)
    if not units then
      return nil
    elseif entries ~= '' then
      call('LSET', log.list, i, pack('<I4', unpack_('<I4', raw) - units) .. entries)
    else
      call('LSET', log.list, i, '')
      call('LREM', log.list, 1, '')
      log.chunks = log.chunks - 1
    end
    return units
  end

  -- The units are removed from the entry of their time. If trimmed units would still be in
  -- the window, nothing is returned: the returned units make up for the trimmed units.
  local p, log = sliding.policy(ARGV[3]), { list = KEYS[3] }
  if not load_log(log, raw) or log.version ~= version or from + log.per <= now or not note(from + log.per) then
    return 0
  elseif log.trimmed > 0 and log.trimmed > now - log.per then
    return 1
  end
  local at, units = from - log.base, nil
  log.front, units = without(log.front, 1, at)
  if not units then
    log.back, units = without(log.back, 1, at)
  end
  if not units then
    units = return_to_chunk(log, at)
  end
  if units then
    log.units = log.units - units
    mend(log)
    return save(pack_log(log))
  end
  return 1
end

local kind = byte(ARGV[3])
if kind <= 1 then
  return return_to_bucket()
elseif kind == 2 then
  return return_to_fixed()
elseif kind == 3 then
  return return_to_log()
elseif kind == 4 then
  return return_to_window()
elseif kind == 7 then
  return return_to_calendar()
end
return 0

-- token_bucket and leaky_bucket: GCRA in exact fractions, the twin of limit/bucket.go.
--
-- A state is short while the interval is whole and no return has been:
--   '<Bdddd'      algorithm, version, tat, whole, horizon
-- and long otherwise:
--   '<Bddddddddd' algorithm, version, tat, part, peak, whole, frac, den, horizon, horizon_part
-- tat is the time at which the bucket is full again, or the queue empty; peak the
-- latest tat that any take has left, for which the state is kept, so that it knows of
-- every return that a receipt must know. The rest is the limit that made it.
local function buckets(env)
  local unpack_, pack, byte, floor, max = struct.unpack, struct.pack, string.byte, math.floor, math.max
  local add, subtract, after, span_of, muldiv, units_in = numbers()
  local now, base, states, due, out = env.now, env.base, env.states, env.due, env.out
  local PASSES, OVER, NEVER, PEEK, BOOK = env.PASSES, env.OVER, env.NEVER, env.PEEK, env.BOOK

  local SHORT, LONG = '<Bdddd', '<Bddddddddd'

  local function bucket_policy(raw)
    local kind, whole, frac, den, refill, refill_part, horizon, horizon_part, max_wait, room, most =
      unpack_('<Bdddddddddd', raw)
    return {
      kind = kind, whole = whole, frac = frac, den = den, refill = refill, refill_part = refill_part,
      horizon = horizon, horizon_part = horizon_part, max_wait = max_wait, room = room, most = most,
      num = whole * den + frac, leaky = kind == 1, algorithm = false,
    }
  end

  -- load_bucket reads a state into b, and reports whether raw is one of the algorithm.
  local function load_bucket(b, raw, kind)
    local have
    if not raw or byte(raw) ~= kind then
      return false
    elseif #raw == 33 then
      have, b.version, b.tat, b.whole, b.horizon = unpack_(SHORT, raw)
      b.part, b.peak, b.frac, b.den, b.horizon_part = 0, b.tat, 0, 1, 0
    elseif #raw == 73 then
      have, b.version, b.tat, b.part, b.peak, b.whole, b.frac, b.den, b.horizon, b.horizon_part = unpack_(LONG, raw)
    end
    return have == kind
  end

  local function pack_bucket(b, kind)
    if b.den == 1 and b.peak <= b.tat then
      return pack(SHORT, kind, b.version, b.tat, b.whole, b.horizon)
    end
    return pack(LONG, kind, b.version, b.tat, b.part, b.peak, b.whole, b.frac, b.den, b.horizon, b.horizon_part)
  end

  -- pull brings a time that lies too far ahead back to the horizon: the clock has
  -- stepped back, or the burst was lowered, and a key waits for one refill at the most.
  local function pull(b, horizon, horizon_part)
    if after(b.tat, b.part, now + horizon, horizon_part) then
      b.tat, b.part = now + horizon, horizon_part
      b.peak, b.version, b.moved = b.tat, later(b.version), true
    end
  end

  -- carry restates the units used at now in intervals of p, rounded up to 1/den.
  local function carry(b, p)
    b.version, b.moved = later(b.version), true
    local us, part = subtract(b.tat, b.part, now, 0, b.den)
    if us < 0 then
      us, part = 0, 0
    else
      local num = b.whole * b.den + b.frac
      local used, rest = units_in(us, part, b.den, num)
      us, part = p.horizon, p.horizon_part
      if used <= p.most then
        local parts, over = muldiv(p.num, rest, num)
        if over > 0 then
          parts = parts + 1
        end
        us, part = span_of(used, p.whole, p.frac, p.den)
        us, part = add(us, part, floor(parts / p.den), parts % p.den, p.den)
      end
    end
    b.tat, b.part = now + us, part
    b.peak = b.tat
  end

  local function open_bucket(b)
    local p, raw = b.policy, states[b.key]
    if not load_bucket(b, raw, p.kind) then
      b.version, b.tat, b.part, b.peak = born(raw, now), now, 0, now
      b.moved = env.replaces(raw)
    elseif b.whole ~= p.whole or b.frac ~= p.frac or b.den ~= p.den then
      pull(b, b.horizon, b.horizon_part)
      carry(b, p)
    elseif b.horizon ~= p.horizon or b.horizon_part ~= p.horizon_part then
      -- Which receipts may be returned while departures are booked, the limit says that
      -- they were taken under: those of another say nothing any more.
      pull(b, b.horizon, b.horizon_part)
      b.version, b.moved = later(b.version), true
    end
    b.whole, b.frac, b.den, b.horizon, b.horizon_part = p.whole, p.frac, p.den, p.horizon, p.horizon_part
    pull(b, p.horizon, p.horizon_part)
    b.from, b.from_part = b.tat, b.part
    if b.from < now then
      b.from, b.from_part = now, 0
    end
  end

  local function bucket_room(b)
    local p = b.policy
    local us, part = subtract(now + p.refill, p.refill_part, b.from, b.from_part, p.den)
    if us < 0 then
      return 0
    end
    return (units_in(us, part, p.den, p.num))
  end

  -- judge_bucket tells whether b's cost passes, and where its tat would be.
  local function judge_bucket(b)
    local p = b.policy
    if b.cost > p.room then
      return NEVER
    end
    local us, part = span_of(b.cost, p.whole, p.frac, p.den)
    b.to, b.to_part = add(b.from, b.from_part, us, part, p.den)
    local late, late_part = subtract(b.to, b.to_part, now + p.refill, p.refill_part, p.den)
    if p.leaky then
      if after(late, late_part, 0, 0) then
        return OVER
      end
      late, late_part = b.from - now, b.from_part
    elseif b.mode ~= BOOK then
      return after(late, late_part, 0, 0) and OVER or PASSES
    end
    if late_part > 0 then
      late = late + 1
    end
    return b.mode == BOOK and late > p.max_wait and OVER or PASSES
  end

  local function settle_bucket(b, all)
    local p = b.policy
    local o = env.o
    out[o + 1] = b.from - now
    if p.den > 1 then
      o = o + 1
      out[o + 1] = b.from_part
    end
    out[o + 2] = b.version
    env.o = o + 2
    if b.mode == PEEK then
      return
    end
    if all and b.cost > 0 then
      b.tat, b.part, b.moved = b.to, b.to_part, true
    end
    if b.moved then
      b.peak = max(b.peak, b.tat)
      states[b.key], due[b.key] = pack_bucket(b, p.kind), b.peak - base
    end
  end

  return {
    policy = bucket_policy, open = open_bucket, judge = judge_bucket, settle = settle_bucket, room_at = bucket_room,
    load = load_bucket, pack = pack_bucket,
  }
end

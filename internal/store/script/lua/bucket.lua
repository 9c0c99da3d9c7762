-- token_bucket and leaky_bucket: GCRA in exact fractions, the same steps as
-- internal/limit/bucket.go.
--
-- A state has the short form if its interval and tat are whole and no unit was returned:
--   '<Bdddd'      algorithm, version, tat, whole, horizon
-- The long form is:
--   '<Bddddddddd' algorithm, version, tat, part, peak, whole, frac, den, horizon, horizon_part
-- tat (theoretical arrival time) is the time at which the bucket is full again, or the queue
-- is empty. peak is the latest tat of any take. The state is kept until peak, so that it has
-- all returns that a valid receipt depends on. The other fields are the policy of record,
-- which is the policy of the last take.
--
-- All policies of a state have the same period, num. num is in microseconds, or in
-- nanoseconds if the period is not in whole microseconds. The interval is num/den, not in
-- lowest terms, and den comes from the count. So restate converts the debt to another count
-- without rounding.
local function buckets(env)
  local unpack_, pack, byte, floor, max, min = struct.unpack, struct.pack, string.byte, math.floor, math.max, math.min
  local add, subtract, after, span_of, muldiv, units_in = numbers()
  local now, base, states, due, out = env.now, env.base, env.states, env.due, env.out
  local PASSES, OVER, NEVER, PEEK, BOOK, TAKE_NOW = env.PASSES, env.OVER, env.NEVER, env.PEEK, env.BOOK, env.TAKE_NOW

  local SHORT, LONG = '<Bdddd', '<Bddddddddd'
  local FARTHEST = 1576800000000000 -- Fifty years, the upper bound of restate.

  local function bucket_policy(raw)
    local kind, whole, frac, den, refill, refill_part, horizon, horizon_part, max_wait, room, most, owing, owing_part =
      unpack_('<Bdddddddddddd', raw)
    return {
      kind = kind, whole = whole, frac = frac, den = den, refill = refill, refill_part = refill_part,
      horizon = horizon, horizon_part = horizon_part, max_wait = max_wait, room = room, most = most,
      owing = owing, owing_part = owing_part,
      num = whole * den + frac, leaky = kind == 1, algorithm = false,
    }
  end

  -- load_bucket reads raw into b, and reports whether raw is a state of p's algorithm.
  local function load_bucket(b, raw, p)
    local have
    if not raw or byte(raw) ~= p.kind then
      return false
    elseif #raw == 33 then
      have, b.version, b.tat, b.whole, b.horizon = unpack_(SHORT, raw)
      b.part, b.peak, b.frac, b.den, b.horizon_part = 0, b.tat, 0, p.num / b.whole, 0
    elseif #raw == 73 then
      have, b.version, b.tat, b.part, b.peak, b.whole, b.frac, b.den, b.horizon, b.horizon_part = unpack_(LONG, raw)
    end
    return have == p.kind
  end

  local function pack_bucket(b, kind)
    if b.frac == 0 and b.part == 0 and b.horizon_part == 0 and b.peak <= b.tat then
      return pack(SHORT, kind, b.version, b.tat, b.whole, b.horizon)
    end
    return pack(LONG, kind, b.version, b.tat, b.part, b.peak, b.whole, b.frac, b.den, b.horizon, b.horizon_part)
  end

  -- pull handles a clock that stepped back. It moves a tat beyond the horizon of the policy
  -- of record back to the horizon, so that a key waits for at most one refill.
  local function pull(b)
    if after(b.tat, b.part, now + b.horizon, b.horizon_part) then
      b.tat, b.part = now + b.horizon, b.horizon_part
      b.peak, b.version, b.moved = b.tat, later(b.version), true
    end
  end

  -- restate gives the time from now to a tat of p that represents the same units in use.
  local function restate(b, p)
    local us, part = b.tat - now, b.part
    if b.den == p.den then
      return us, part
    end
    local rest, more
    us, rest = muldiv(us, b.den, p.den)
    if us > FARTHEST then
      return FARTHEST, 0
    end
    rest = rest + part
    more = floor(rest / p.den)
    return us + more, rest - more * p.den
  end

  -- see sets b.from to the tat as the policy sees it. b.from is not before now.
  local function see(b)
    b.from, b.from_part = b.tat, b.part
    if b.tat < now then
      b.from, b.from_part = now, 0
    elseif b.other then
      local us, part = restate(b, b.policy)
      b.from, b.from_part = now + us, part
    end
  end

  -- open_bucket loads the state of a key into b. The state keeps the policy of record until
  -- p takes units.
  local function open_bucket(b)
    local p, raw = b.policy, states[b.key]
    if not load_bucket(b, raw, p) then
      b.version, b.tat, b.part, b.peak = born(raw, now), now, 0, now
      b.whole, b.frac, b.den, b.horizon, b.horizon_part = p.whole, p.frac, p.den, p.horizon, p.horizon_part
      b.moved = env.replaces(raw)
    end
    pull(b)
    b.other = b.den ~= p.den or b.horizon ~= p.horizon or b.horizon_part ~= p.horizon_part
    see(b)
  end

  local function bucket_room(b)
    local p = b.policy
    local us, part = subtract(now + p.refill, p.refill_part, b.from, b.from_part, p.den)
    if us < 0 then
      return 0
    end
    return (units_in(us, part, p.den, p.num))
  end

  -- judge_bucket decides whether b's cost passes, and sets b.to to the tat afterwards.
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
    local most = b.mode == BOOK and p.max_wait or b.mode == TAKE_NOW and 0 or late
    return late > most and OVER or PASSES
  end

  -- record makes p the policy of record. Earlier receipts become invalid if the rate at which
  -- their units have refilled is no longer known, or if p books departures, which can depend
  -- on these units.
  local function record(b, p)
    if b.other then
      if b.den ~= p.den or p.max_wait > 0 or p.leaky then
        b.version = later(b.version)
      end
      b.whole, b.frac, b.den, b.horizon, b.horizon_part = p.whole, p.frac, p.den, p.horizon, p.horizon_part
      b.other = false
    end
  end

  local function save_bucket(b)
    b.peak = max(b.peak, b.tat)
    states[b.key], due[b.key] = pack_bucket(b, b.policy.kind), b.peak - base
  end

  -- refund_bucket moves the tat back by the cost, but not before now. The policy of record stays,
  -- and its interval is the unit. While departures are booked ahead, nothing comes back: the
  -- units would be given out again at these departures.
  local function refund_bucket(b)
    local p = b.policy
    if b.cost == 0 or not after(b.tat, b.part, now, 0)
      or p.max_wait > 0 and after(b.from, b.from_part, now + p.refill, p.refill_part) then
      return
    end
    if b.cost > (units_in(b.tat - now, b.part, b.den, p.num)) then
      b.tat, b.part = now, 0
    else
      local us, part = span_of(b.cost, b.whole, b.frac, b.den)
      b.tat, b.part = subtract(b.tat, b.part, us, part, b.den)
    end
    b.version = later(b.version)
    see(b)
    save_bucket(b)
  end

  -- charge_bucket counts up to the cost, until the tat is at the largest debt of the policy.
  local function charge_bucket(b)
    local p = b.policy
    local us, part = subtract(now + p.owing, p.owing_part, b.from, b.from_part, p.den)
    if us < 0 then
      return 0
    end
    local units = min(b.cost, (units_in(us, part, p.den, p.num)))
    if units > 0 then
      record(b, p)
      us, part = span_of(units, p.whole, p.frac, p.den)
      b.tat, b.part = add(b.from, b.from_part, us, part, p.den)
      b.from, b.from_part = b.tat, b.part
      save_bucket(b)
    end
    return units
  end

  local function settle_bucket(b, all)
    local p, o = b.policy, env.o
    local takes = all and b.cost > 0 and b.mode ~= PEEK
    if takes then
      record(b, p)
    end
    out[o + 1] = b.from - now
    if p.frac > 0 then
      o = o + 1
      out[o + 1] = b.from_part
    elseif b.from_part > 0 then
      out[o + 1] = b.from - now + 1 -- Rounding up does not change the decision: p has only whole numbers.
    end
    out[o + 2] = b.version
    env.o = o + 2
    if takes then
      b.tat, b.part, b.moved = b.to, b.to_part, true
    end
    if b.moved and b.mode ~= PEEK then
      save_bucket(b)
    end
  end

  return {
    policy = bucket_policy, open = open_bucket, judge = judge_bucket, settle = settle_bucket, refund = refund_bucket,
    charge = charge_bucket, room_at = bucket_room, load = load_bucket, pack = pack_bucket,
  }
end

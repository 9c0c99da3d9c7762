-- token_bucket: GCRA in exact fractions, the twin of limit/bucket.go.
--
-- The state is one string:
--   tat, part     the time at which the bucket is full again
--   peak          the latest tat that any take has left: the state is kept until
--                 then, so that it knows of every return that a receipt must know
--   returned      units returned, modulo 2^32; a new state starts at its time of birth
--   whole, frac, den, most   the interval that tat counts in, and the most units that
--                 it may stand for: a changed limit carries over from these
local BUCKET_STATE = '<Bdddddddd'
local BUCKET_LIMIT = '<Bddddddd'
local BUCKET = 0

-- jump is 2^32 over the golden ratio: the sums of any number of jumps lie far from
-- each other and from 0, modulo 2^32, and so do the receipts before and after one.
local JUMP = 2654435769

-- carry restates the units used at now in intervals of the new limit, rounded up to
-- a microsecond. Floating point guesses the units, and is put right exactly.
local function carry(b, now, whole, frac, den, most)
  b.returned, b.moved = (b.returned + JUMP) % 4294967296, true -- Older receipts are of another rate.
  local debt, debt_part = subtract(b.tat, b.part, now, 0, b.den)
  b.tat, b.part = now, 0
  if debt < 0 or most == 0 or b.most == 0 then
    return
  end
  local interval = b.whole + b.frac / b.den
  local used = math.min(math.floor((debt + debt_part / b.den) / interval + 0.5), b.most)
  local us, part = span_of(used, b.whole, b.frac, b.den)
  if after(us, part, debt, debt_part) then
    used = used - 1
    us, part = span_of(used, b.whole, b.frac, b.den)
  end
  debt, debt_part = subtract(debt, debt_part, us, part, b.den)
  local rest = math.min((debt + debt_part / b.den) / interval, 1)
  us, part = span_of(math.min(used, most), whole, frac, den)
  -- The factor outweighs what the roundings of floating point can have taken off.
  rest = math.ceil(rest * (whole + frac / den) * (1 + 2^-49))
  b.tat, b.part = now + us + rest, part
end

-- pull brings a time that lies too far ahead back to the horizon: the clock has
-- stepped back, or the burst was lowered, and a key waits for one refill at the
-- most. What the bucket forgets so counts as returned.
local function pull(b, now)
  local horizon = now + b.refill + b.max_wait
  if not after(b.tat, b.part, horizon, b.refill_part) then
    return
  end
  local units = 0
  if b.most > 0 then
    units = math.min(math.floor((b.tat - horizon) / (b.whole + b.frac / b.den)) + 2, JUMP)
  end
  b.tat, b.part = horizon, b.refill_part
  b.returned, b.moved = (b.returned + units) % 4294967296, true
end

-- load_bucket reads the state of a key with the limit that made it, or gives nothing.
local function load_bucket(name)
  local raw = redis.call('GET', name)
  if not raw or string.byte(raw) ~= BUCKET then
    return nil
  end
  local b, kind = { key = name }, nil
  kind, b.tat, b.part, b.peak, b.returned, b.whole, b.frac, b.den, b.most = struct.unpack(BUCKET_STATE, raw)
  return b
end

-- open_bucket gives the bucket of a key at now, restated for the limit in words.
local function open_bucket(name, now, words)
  local kind, whole, frac, den, refill, refill_part, max_wait, most = struct.unpack(BUCKET_LIMIT, words)
  local b = load_bucket(name)
  if not b then
    b = { key = name, tat = now, part = 0, peak = now, returned = now % 4294967296 }
  elseif b.whole ~= whole or b.frac ~= frac or b.den ~= den then
    carry(b, now, whole, frac, den, most)
  end
  b.whole, b.frac, b.den, b.most = whole, frac, den, most
  b.refill, b.refill_part, b.max_wait = refill, refill_part, max_wait
  pull(b, now)
  if b.moved then
    b.peak = b.tat + 1
  end
  return b
end

local function pack_bucket(b)
  return struct.pack(BUCKET_STATE, BUCKET, b.tat, b.part, b.peak, b.returned, b.whole, b.frac, b.den, b.most)
end

local function save_bucket(b, now, slack)
  b.peak = math.max(b.peak, b.tat + 1)
  local ttl = math.max(math.ceil((b.peak - now) / 1000), 0) + slack
  redis.call('SET', b.key, pack_bucket(b), 'PX', ttl)
end

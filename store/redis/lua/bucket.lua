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
-- a microsecond. The division is a guess by floating point, put right exactly.
local function carry(b, now, whole, frac, den, most)
  b.returned, b.moved = (b.returned + JUMP) % 4294967296, true -- Older receipts are of another rate.
  local debt, debt_part = subtract(b.tat, b.part, now, 0, den)
  b.tat, b.part = now, 0
  if debt < 0 or most == 0 or b.most == 0 then
    return
  end
  local interval = whole + frac / den
  local used = math.min(math.floor(debt / interval), most)
  local us, part = span_of(used, whole, frac, den)
  if after(us, part, debt, debt_part) then
    used = used - 1
    us, part = span_of(used, whole, frac, den)
  end
  debt, debt_part = subtract(debt, debt_part, us, part, den)
  local rest = math.min((debt + debt_part / den) / interval, 1)
  if used >= b.most then
    b.tat, b.part = now + b.refill + b.max_wait, b.refill_part
    return
  end
  us, part = span_of(used, b.whole, b.frac, b.den)
  -- The factor outweighs what four roundings can have taken off.
  rest = math.ceil(rest * (b.whole + b.frac / b.den) * (1 + 2^-49))
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

-- open_bucket reads the state of b, restated for the limit in words. It reports
-- whether there is one.
local function open_bucket(b, now, words)
  local kind
  kind, b.whole, b.frac, b.den, b.refill, b.refill_part, b.max_wait, b.most = struct.unpack(BUCKET_LIMIT, words)
  local raw = redis.call('GET', b.key)
  if not raw or string.byte(raw) ~= BUCKET then
    b.tat, b.part, b.peak, b.returned = now, 0, now, now % 4294967296
    return false
  end
  local whole, frac, den, most
  kind, b.tat, b.part, b.peak, b.returned, whole, frac, den, most = struct.unpack(BUCKET_STATE, raw)
  if whole ~= b.whole or frac ~= b.frac or den ~= b.den then
    carry(b, now, whole, frac, den, most)
  end
  pull(b, now)
  if b.moved then
    b.peak = b.tat + 1
  end
  return true
end

local function save_bucket(b, now, slack)
  b.peak = math.max(b.peak, b.tat + 1)
  redis.call('SET', b.key,
    struct.pack(BUCKET_STATE, BUCKET, b.tat, b.part, b.peak, b.returned, b.whole, b.frac, b.den, b.most),
    'PX', math.max(math.ceil((b.peak - now) / 1000), 0) + slack)
end

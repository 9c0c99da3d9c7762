-- Exact time in numbers that are floating-point.
--
-- A time is whole microseconds and part/den of one more, den being the limit's.
-- Every number here is whole and below 2^53, so every sum and product is exact:
-- Prepare refuses the limits with which one could grow beyond (plan.go).

local function add(us, part, more, more_part, den)
  us, part = us + more, part + more_part
  if part >= den then
    return us + 1, part - den
  end
  return us, part
end

local function subtract(us, part, less, less_part, den)
  us, part = us - less, part - less_part
  if part < 0 then
    return us - 1, part + den
  end
  return us, part
end

local function after(us, part, other, other_part)
  return us > other or us == other and part > other_part
end

-- span_of gives the time of n intervals of whole + part/den microseconds. n x part
-- stays below 2^52 because n is at most what the limit can be owed, and below 2^53
-- Lua's division of whole numbers rounds down rightly.
local function span_of(n, whole, part, den)
  local parts = n * part
  local rest = parts % den
  return n * whole + (parts - rest) / den, rest
end

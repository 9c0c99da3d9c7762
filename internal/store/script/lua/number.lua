-- Exact arithmetic with Lua's floating-point numbers.
--
-- A time is us whole microseconds plus part/den of a microsecond, where den belongs to the
-- limit. All stored numbers are whole and below 2^53, so sums are exact. muldiv computes
-- products that may exceed 2^53. Compile refuses limits that would exceed these bounds
-- (fit.go). Below 2^53, Lua's remainder is exact, and floor of a quotient rounds down
-- correctly.

local function numbers()
  local floor = math.floor

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

  -- muldiv gives a x b / c rounded down, and the remainder. It uses long division if the
  -- product is 2^53 or more. c is at most 2^51, and the quotient is below 2^53.
  local function muldiv(a, b, c)
    local product = a * b
    if product < 9007199254740992 then
      local rest = product % c
      return (product - rest) / c, rest
    end
    local times = floor(b / c)
    local quotient, rest, whole = 0, 0, a * times
    b = b - times * c
    local radix = 2
    while c * radix * 4 <= 9007199254740992 do
      radix = radix * 2
    end
    local power = 1
    while power * radix <= a do
      power = power * radix
    end
    while power >= 1 do
      local digit = floor(a / power)
      a = a - digit * power
      rest = rest * radix + digit * b
      digit = floor(rest / c)
      quotient, rest = quotient * radix + digit, rest - digit * c
      power = power / radix
    end
    return whole + quotient, rest
  end

  -- span_of gives the time of n intervals of whole + part/den microseconds.
  local function span_of(n, whole, part, den)
    if part == 0 then
      return n * whole, 0
    end
    local us, rest = muldiv(n, part, den)
    return n * whole + us, rest
  end

  -- units_in gives the whole intervals of num/den microseconds in a time, and the rest
  -- in units of 1/den microsecond.
  local function units_in(us, part, den, num)
    local units, rest = muldiv(us, den, num)
    rest = rest + part
    local more = floor(rest / num)
    return units + more, rest - more * num
  end

  return add, subtract, after, span_of, muldiv, units_in
end

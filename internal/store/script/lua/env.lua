-- surroundings gives what the algorithms read: the call's time and keys, what becomes
-- of them, and the words in which they answer. An algorithm is a function of these
-- that makes its functions, because a call makes those of a script anew: no call pays
-- for an algorithm that it does not use.
local function surroundings(now, base, how, slack, states, due, out, count)
  local PASSES, OVER, NEVER = 0, 1, 2

  -- replaces reports whether there was a state of another algorithm, which ends with
  -- the first decision that is no look.
  local function replaces(raw)
    return raw and #raw > 9 or false
  end

  -- units_left and judge_units are those of all that count units up to a count.
  local function units_left(op)
    return op.policy.count - op.used
  end

  local function judge_units(op)
    local limit = op.policy.count
    if op.cost > limit then
      return NEVER
    end
    return op.used + op.cost > limit and OVER or PASSES
  end

  return {
    now = now, base = base, slack = slack, states = states, due = due, out = out, o = 1, count = count,
    expire = how == 'PX' and 'PEXPIRE' or 'PEXPIREAT',
    PASSES = PASSES, OVER = OVER, NEVER = NEVER, TAKE = 0, PEEK = 1, BOOK = 2,
    replaces = replaces, units_left = units_left, judge_units = judge_units,
  }
end

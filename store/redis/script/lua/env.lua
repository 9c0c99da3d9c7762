-- surroundings gives what the algorithms read: the call's time and keys, what becomes
-- of them, and the words in which they answer. An algorithm is a function of these
-- that makes its functions, because a call makes those of a script anew: no call pays
-- for an algorithm that it does not use.
local function surroundings(now, base, how, slack, states, due, out, count)
  return {
    now = now, base = base, slack = slack, states = states, due = due, out = out, o = 1, count = count,
    expire = how == 'PX' and 'PEXPIRE' or 'PEXPIREAT',
    PASSES = 0, OVER = 1, NEVER = 2, TAKE = 0, PEEK = 1, BOOK = 2,
  }
end

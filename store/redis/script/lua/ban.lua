-- Bans: every attempt counts, in a window that the first one begins, the twin of
-- limit/ban.go.
--
-- The state is '<Bddddddd': algorithm, version, start, units, early, count, per, ban_for.
-- A ban without units has no window. early is how much before its policy's end a ban
-- ends that was carried over.
local function bans(env)
  local unpack_, pack, byte, ceil, min, max = struct.unpack, struct.pack, string.byte, math.ceil, math.min, math.max
  local now, base, states, due, out = env.now, env.base, env.states, env.due, env.out
  local PASSES, OVER, PEEK = env.PASSES, env.OVER, env.PEEK

  local BAN, CEILING = '<Bddddddd', 9007199254740991

  local function ban_policy(raw)
    local kind, count, per, ban_for, cut = unpack_('<Bdddd', raw)
    return { kind = kind, count = count, per = per, ban_for = ban_for, cut = cut, algorithm = false }
  end

  -- ends gives the time at which the window is over, its ban included.
  local function ends(b)
    if b.units > b.count then
      return b.start + b.per + b.ban_for - b.early
    end
    return b.start + b.per
  end

  -- roll_ban ends a window that is over; one that begins after now begins now.
  local function roll_ban(b)
    if b.units == 0 then
      return
    elseif now < b.start then
      b.start, b.moved = now, true
    elseif now >= ends(b) then
      b.units, b.early, b.moved = 0, 0, true
    end
  end

  -- carry_ban keeps the attempts of a window that is not over. A key that was banned
  -- and would be stays so until its old end or the new one, whichever is earlier.
  local function carry_ban(b, p)
    roll_ban(b)
    local was, old = b.units > b.count, ends(b)
    b.count, b.per, b.ban_for, b.early, b.moved = p.count, p.per, p.ban_for, 0, true
    if b.units == 0 then
      return
    elseif was and b.units > b.count then
      b.early = max(ceil((ends(b) - old) / p.cut) * p.cut, 0)
    elseif now >= b.start + b.per then
      b.units = 0
    end
  end

  local function open_ban(b)
    local p, raw, kind = b.policy, states[b.key], nil
    if raw and byte(raw) == 5 and #raw == 57 then
      kind, b.version, b.start, b.units, b.early, b.count, b.per, b.ban_for = unpack_(BAN, raw)
      if b.count ~= p.count or b.per ~= p.per or b.ban_for ~= p.ban_for then
        carry_ban(b, p)
      end
    else
      b.version, b.start, b.units, b.early = born(raw, now), now, 0, 0
      b.count, b.per, b.ban_for = p.count, p.per, p.ban_for
      b.moved = env.replaces(raw)
    end
    roll_ban(b)
  end

  local function judge_ban(b)
    return b.units + b.cost > b.count and OVER or PASSES
  end

  local function settle_ban(b)
    if b.units == 0 then
      b.start = now
    end
    local o = env.o
    out[o + 1], out[o + 2], out[o + 3] = b.start - now, b.units, b.early
    env.o = o + 3
    if b.mode == PEEK then
      return
    end
    if b.cost > 0 then
      b.units, b.moved = min(b.units + b.cost, CEILING), true
    end
    if b.moved then
      states[b.key] = pack(BAN, 5, b.version, b.start, b.units, b.early, b.count, b.per, b.ban_for)
      due[b.key] = ends(b) - base
    end
  end

  return { policy = ban_policy, open = open_ban, judge = judge_ban, settle = settle_ban }
end

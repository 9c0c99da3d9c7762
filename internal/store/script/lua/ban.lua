-- Bans: every attempt counts, in a window that begins with the first attempt. The steps are
-- those of internal/limit/ban.go.
--
-- A state is '<Bddddddd': algorithm, version, start, units, early, count, per, ban_for.
-- Without units, there is no window. count, per and ban_for belong to the policy that counted
-- last, or to the policy of the current ban. early is 0; earlier releases used it to shorten
-- bans.
local function bans(env)
  local unpack_, pack, byte, min = struct.unpack, struct.pack, string.byte, math.min
  local now, base, states, due, out = env.now, env.base, env.states, env.due, env.out
  local PASSES, OVER, PEEK = env.PASSES, env.OVER, env.PEEK

  local BAN, CEILING = '<Bddddddd', 9007199254740991

  local function ban_policy(raw)
    local kind, count, per, ban_for = unpack_('<Bddd', raw)
    return { kind = kind, count = count, per = per, ban_for = ban_for, algorithm = false }
  end

  -- ends gives the end of the window, including its ban.
  local function ends(b)
    if b.units > b.count then
      return b.start + b.per + b.ban_for - b.early
    end
    return b.start + b.per
  end

  -- roll_ban resets a window that has ended. If the clock stepped back before the start of
  -- the window, the window starts now.
  local function roll_ban(b)
    if b.units == 0 then
      return
    elseif now < b.start then
      b.start, b.moved = now, true
    elseif now >= ends(b) then
      b.units, b.early, b.moved = 0, 0, true
    end
  end

  -- carry_ban moves the attempts of a key that is not banned to the policy p. It drops them
  -- if the window has ended under p's period. A current ban keeps its own policy.
  local function carry_ban(b, p)
    roll_ban(b)
    if b.units > b.count then
      return
    end
    b.count, b.per, b.ban_for, b.early, b.moved = p.count, p.per, p.ban_for, 0, true
    if now >= b.start + b.per then
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
    -- The third number is the remaining time of a current ban.
    out[o + 1], out[o + 2], out[o + 3] = b.start - now, b.units, b.units > b.count and ends(b) - now or 0
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

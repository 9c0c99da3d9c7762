-- sliding_window: counters of sub-windows, the twin of limit/window.go.
--
-- The state is '<Bdddddd' and n x 'd': algorithm, version, n, per, newest, total,
-- current, and the counters of the n sub-windows before the newest, oldest first.
-- current is the newest one's. So a decision in the sub-window of the one before it
-- reads and writes the head alone.
local function sliding_windows(env)
  local unpack_, pack, byte, sub, rep = struct.unpack, struct.pack, string.byte, string.sub, string.rep
  local ceil, min, max = math.ceil, math.min, math.max
  local add, subtract, after, span_of, muldiv = numbers()
  local now, base, states, due, out = env.now, env.base, env.states, env.due, env.out
  local OVER, PEEK = env.OVER, env.PEEK

  local WINDOW, WINDOW_HEAD = '<Bdddddd', 49

  local function window_policy(raw)
    local kind, count, per, n, ceiling, counts = unpack_('<BddddB', raw)
    return { kind = kind, count = count, per = per, n = n, ceiling = ceiling, counts = counts == 1, algorithm = false }
  end

  local function load_window(w, raw)
    if not raw or byte(raw) ~= 4 or #raw < WINDOW_HEAD then
      return false
    end
    local kind
    kind, w.version, w.n, w.per, w.newest, w.total, w.current = unpack_(WINDOW, raw)
    w.body = sub(raw, WINDOW_HEAD + 1)
    return #w.body == 8 * w.n
  end

  local function pack_window(w)
    return pack(WINDOW, 4, w.version, w.n, w.per, w.newest, w.total, w.current) .. w.body
  end

  -- place_of gives the sub-window that t lies in and how far it has run, in parts of
  -- per: t x n = k x per + elapsed. The rest of t by per, times n, is below 2^53.
  local function place_of(t, per, n)
    local rest = t % per
    local parts = rest * n
    local elapsed = parts % per
    return (t - rest) / per * n + (parts - elapsed) / per, elapsed
  end

  -- start_of gives the first microsecond of sub-window k.
  local function start_of(k, per, n)
    local rest = k % n
    return (k - rest) / n * per + ceil(rest * per / n)
  end

  -- counter gives the i-th kept counter, from 0 for the oldest.
  local function counter(w, i)
    if i == w.n then
      return w.current
    end
    return (unpack_('<d', w.body, 8 * i + 1))
  end

  local function zeros(n)
    return rep('\0\0\0\0\0\0\0\0', n)
  end

  -- forward drops the oldest by sub-windows; by is at least 1.
  local function forward(w, by)
    local before = w.total
    if by > w.n then
      w.body, w.current, w.total = zeros(w.n), 0, 0
      w.moved = w.moved or before > 0
      return
    end
    local all = w.body .. pack('<d', w.current)
    local dropped = { unpack_('<' .. rep('d', by), all) } -- And after them a position.
    for i = 1, by do
      w.total = w.total - dropped[i]
    end
    w.body = sub(all, 8 * by + 1) .. zeros(by - 1)
    w.current, w.moved = 0, w.moved or w.total < before
  end

  -- advance brings w to now and gives the time to decide at. After a step back of up to
  -- a window the newest sub-window is held; after a longer one the counters move along.
  local function advance(w)
    local k = place_of(now, w.per, w.n)
    local back = w.newest - k
    if back > w.n then
      w.version, w.moved = later(w.version), true
    elseif back > 0 then
      return start_of(w.newest, w.per, w.n)
    elseif back < 0 then
      forward(w, -back)
    end
    w.newest = k
    return now
  end

  -- carry_window restates the counters as sub-windows of p: each moves to the newest one
  -- that its own reaches, and out of the oldest, so that nothing leaves too early.
  local function carry_window(w, p)
    local k, n = place_of(now, p.per, p.n), p.n
    local counters, total = {}, 0
    for i = 0, n do
      counters[i + 1] = 0
    end
    for i = 0, w.n do
      local units, from = counter(w, i), w.newest - w.n + i
      if units > 0 then
        local to = place_of(min(start_of(from + 1, w.per, w.n) - 1, now), p.per, n)
        if to >= k - n then
          local slot = max(to, k - n + 1) - (k - n) + 1
          counters[slot], total = counters[slot] + units, total + units
        end
      end
    end
    w.version, w.moved = later(w.version), true
    w.newest, w.total, w.current, w.n, w.per = k, total, counters[n + 1], n, p.per
    w.body = pack('<' .. rep('d', n), unpack(counters, 1, n))
  end

  local function open_window(w)
    local p, raw = w.policy, states[w.key]
    if not load_window(w, raw) then
      w.version, w.n, w.per, w.total, w.current = born(raw, now), p.n, p.per, 0, 0
      w.newest, w.body = place_of(now, p.per, p.n), zeros(p.n)
      w.moved = env.replaces(raw)
    elseif w.n ~= p.n or w.per ~= p.per then
      carry_window(w, p)
    end
    w.at = advance(w)
    local k, elapsed = place_of(w.at, w.per, w.n)
    local oldest = counter(w, 0)
    w.used, w.elapsed = w.total, elapsed
    if oldest > 0 then
      w.used = w.total - oldest + (muldiv(oldest, w.per - elapsed, w.per))
    end
    w.used = min(w.used, p.count) -- Counted refusals may have left more; full is full.
  end

  -- newest_used gives the newest sub-window that has counted anything.
  local function newest_used(w)
    for i = w.n, 0, -1 do
      if counter(w, i) > 0 then
        return w.newest - w.n + i
      end
    end
    return w.newest
  end

  -- passes_at gives the first microsecond at which the estimate, if nothing more
  -- arrives, is at most room.
  local function passes_at(w, room)
    local per, whole = w.per, w.total
    for j = 0, w.n do
      local oldest = counter(w, j)
      whole = whole - oldest
      if whole <= room then
        -- floor(oldest x (per - e) / per) <= left for every e from the least one on.
        local least, left = 0, room - whole
        if oldest > left then
          local parts, rest = muldiv(per, left + 1, oldest)
          least = per - parts + 1
          if rest > 0 then
            least = least - 1
          end
        end
        if j == 0 then
          least = max(least, w.elapsed)
        end
        if least < per then
          return w.at + ceil((j * per + least - w.elapsed) / w.n)
        end
      end
    end
    return start_of(w.newest + w.n + 1, per, w.n)
  end

  local function settle_window(w, all, possible)
    local p = w.policy
    local counts = w.cost > 0 and w.mode ~= PEEK and (all or possible and p.counts)
    if counts then
      local units = min(w.cost, max(p.ceiling - w.current, 0))
      w.current, w.total, w.moved = w.current + units, w.total + units, true
    end
    local retry, reset = 0, 0
    if w.code == OVER then
      retry = passes_at(w, p.count - w.cost) - now
    end
    if w.total > 0 then
      reset = start_of(newest_used(w) + w.n + 1, w.per, w.n) - now
    end
    local o = env.o
    out[o + 1], out[o + 2], out[o + 3], out[o + 4], out[o + 5] = w.at - now, w.used, retry, reset, w.version
    env.o = o + 5
    if w.moved and w.mode ~= PEEK then
      states[w.key], due[w.key] = pack_window(w), now + reset - base
    end
  end

  return {
    policy = window_policy, open = open_window, judge = env.judge_units, settle = settle_window, room_at = env.units_left,
    load = load_window, pack = pack_window, place_of = place_of, start_of = start_of, counter = counter,
  }
end

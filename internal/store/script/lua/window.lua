-- sliding_window: counters of sub-windows, the same steps as internal/limit/window.go.
--
-- A state is '<Bdd' (algorithm, version, per), and then a ring for each number of
-- sub-windows n that policies use, in the order in which they were added. A ring is '<dddd'
-- (n, newest, total, current), and then n x 'd': the counters of the n sub-windows before the
-- newest, oldest first. current is the counter of the newest sub-window. So decisions in the
-- same sub-window change only the first four numbers of a ring.
local function sliding_windows(env)
  local unpack_, pack, byte, sub, rep = struct.unpack, struct.pack, string.byte, string.sub, string.rep
  local ceil, floor, min, max, remove = math.ceil, math.floor, math.min, math.max, table.remove
  local add, subtract, after, span_of, muldiv = numbers()
  local now, base, states, due, out = env.now, env.base, env.states, env.due, env.out
  local OVER, PEEK = env.OVER, env.PEEK

  local WINDOW, WINDOW_HEAD, RING, MAX_RINGS = '<Bdd', 17, '<dddd', 4

  local function window_policy(raw)
    local kind, count, per, n, ceiling, counts, owe = unpack_('<BddddBd', raw)
    return { kind = kind, count = count, owe = owe, per = per, n = n, ceiling = ceiling, counts = counts == 1, algorithm = false }
  end

  local function load_window(w, raw)
    if not raw or byte(raw) ~= 4 or #raw <= WINDOW_HEAD then
      return false
    end
    local kind, at
    kind, w.version, w.per, at = unpack_(WINDOW, raw)
    w.rings = {}
    while at + 32 <= #raw + 1 do
      local r = {}
      r.n, r.newest, r.total, r.current, at = unpack_(RING, raw, at)
      r.body = sub(raw, at, at + 8 * r.n - 1)
      at = at + 8 * r.n
      w.rings[#w.rings + 1] = r
    end
    return at == #raw + 1
  end

  local function pack_window(w)
    local raw = pack(WINDOW, 4, w.version, w.per)
    for i = 1, #w.rings do
      local r = w.rings[i]
      raw = raw .. pack(RING, r.n, r.newest, r.total, r.current) .. r.body
    end
    return raw
  end

  -- place_of gives the sub-window k of t, and the elapsed part of k in units of 1/n
  -- microsecond: t x n = k x per + elapsed. (t % per) x n is below 2^53.
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

  -- counter gives the i-th counter of a ring, from 0 for the oldest.
  local function counter(r, i)
    if i == r.n then
      return r.current
    end
    return (unpack_('<d', r.body, 8 * i + 1))
  end

  local function zeros(n)
    return rep('\0\0\0\0\0\0\0\0', n)
  end

  -- forward removes the by oldest sub-windows from a ring. by is at least 1.
  local function forward(w, r, by)
    local before = r.total
    if by > r.n then
      r.body, r.current, r.total = zeros(r.n), 0, 0
      w.moved = w.moved or before > 0
      return
    end
    local all = r.body .. pack('<d', r.current)
    local dropped = { unpack_('<' .. rep('d', by), all) } -- The last value is a position.
    for i = 1, by do
      r.total = r.total - dropped[i]
    end
    r.body = sub(all, 8 * by + 1) .. zeros(by - 1)
    r.current, w.moved = 0, w.moved or r.total < before
  end

  -- owes reports whether the sub-windows of one window have more than count units.
  local function owes(w, r)
    local p = w.policy
    return p.owe > 0 and r.total - counter(r, 0) > p.count
  end

  -- pay moves a ring with a debt towards sub-window k, until the debt is paid. Each new sub-window
  -- leaves count units in the n sub-windows before it, and gets the others. After n steps, the
  -- counters are as before, with count units less in the newest.
  local function pay(w, r, k)
    local p, n, steps = w.policy, r.n, 0
    local c = { unpack_('<' .. rep('d', n), r.body) }
    c[n + 1] = r.current
    while r.newest < k and r.total - c[1] > p.count do
      local rounds = 0
      if steps > n then
        rounds = min(floor((k - r.newest) / n), floor(c[n + 1] / p.count) - 1)
      end
      if rounds > 0 then
        c[n + 1], r.total, r.newest = c[n + 1] - rounds * p.count, r.total - rounds * p.count, r.newest + rounds * n
      else
        r.total = r.total - remove(c, 1)
        local over = min(r.total - p.count, c[n])
        c[n], c[n + 1] = c[n] - over, min(over, p.owe) -- Another policy may have charged more.
        r.total, r.newest = r.total - (over - c[n + 1]), r.newest + 1
      end
      steps = steps + 1
    end
    r.body, r.current, w.moved = pack('<' .. rep('d', n), unpack(c, 1, n)), c[n + 1], true
  end

  -- paid gives the ring as it will be when its debt is paid.
  local function paid(w, r)
    local copy = { n = r.n, newest = r.newest, total = r.total, current = r.current, body = r.body }
    pay({ policy = w.policy }, copy, math.huge)
    return copy
  end

  -- advance moves a ring to t, and gives the time of the decision. After the clock stepped
  -- back by at most one window, the ring stays at its newest sub-window. After a longer step,
  -- the counters move back with the clock.
  local function advance(w, r, t)
    local k = place_of(t, w.per, r.n)
    local back = r.newest - k
    if back > r.n then
      w.version, w.moved = later(w.version), true
    elseif back > 0 then
      return start_of(r.newest, w.per, r.n)
    elseif back < 0 then
      if owes(w, r) then
        pay(w, r, k)
      end
      if r.newest < k then
        forward(w, r, k - r.newest)
      end
    end
    r.newest = k
    return t
  end

  -- seed makes a ring of n sub-windows from another ring. Each counter moves to the newest
  -- sub-window that overlaps its old one, and never to the oldest. So no unit expires too
  -- early.
  local function seed(w, n, from)
    local per = w.per
    local t = advance(w, from, now)
    local k = place_of(t, per, n)
    local counters, total = {}, 0
    for i = 0, n do
      counters[i + 1] = 0
    end
    for i = 0, from.n do
      local units, was = counter(from, i), from.newest - from.n + i
      if units > 0 then
        local to = place_of(min(start_of(was + 1, per, from.n) - 1, t), per, n)
        if to >= k - n then
          local slot = max(to, k - n + 1) - (k - n) + 1
          counters[slot], total = counters[slot] + units, total + units
        end
      end
    end
    return {
      n = n, newest = k, total = total, current = counters[n + 1], body = pack('<' .. rep('d', n), unpack(counters, 1, n)),
    }
  end

  -- find_ring gives the ring of n sub-windows. A missing ring is made from the ring with the
  -- largest n. If there are already MAX_RINGS rings, it replaces the first one.
  local function find_ring(w, n)
    local rings = w.rings
    local finest = rings[1]
    for i = 1, #rings do
      if rings[i].n == n then
        return rings[i]
      elseif rings[i].n > finest.n then
        finest = rings[i]
      end
    end
    local r
    if finest then
      r, w.moved = seed(w, n, finest), true
      if #rings >= MAX_RINGS then
        remove(rings, 1)
      end
    else
      r = { n = n, newest = place_of(now, w.per, n), total = 0, current = 0, body = zeros(n) }
    end
    rings[#rings + 1] = r
    return r
  end

  -- view finds the ring of the policy, and estimates the used units.
  local function view(w)
    local p = w.policy
    local r = find_ring(w, p.n)
    w.ring = r
    w.at = advance(w, r, now)
    local k, elapsed = place_of(w.at, w.per, r.n)
    local oldest = counter(r, 0)
    w.used, w.elapsed = r.total, elapsed
    if oldest > 0 then
      w.used = r.total - oldest + (muldiv(oldest, w.per - elapsed, w.per))
    end
    w.used = min(w.used, p.count) -- A larger count or counted refusals may have left more units than p.count.
  end

  -- open_window loads the counters of a key. A Refund adds no ring.
  local function open_window(w)
    local p, raw = w.policy, states[w.key]
    if not load_window(w, raw) then
      w.version, w.per, w.rings = born(raw, now), p.per, {}
      w.moved = env.replaces(raw)
    end
    if w.mode ~= env.REFUND then
      view(w)
    end
  end

  -- newest_used gives the newest sub-window with a counter above 0.
  local function newest_used(r)
    for i = r.n, 0, -1 do
      if counter(r, i) > 0 then
        return r.newest - r.n + i
      end
    end
    return r.newest
  end

  -- free_at gives the time at which the last unit of a ring expires.
  local function free_at(w, r)
    if owes(w, r) then
      r = paid(w, r)
    end
    return r.total > 0 and start_of(newest_used(r) + r.n + 1, w.per, r.n) or now
  end

  -- passes_at gives the first microsecond at which the estimate is at most room, if no
  -- further units are counted.
  local function passes_at(w, room)
    local r, per = w.ring, w.per
    if owes(w, r) then
      r = paid(w, r)
      w = { policy = w.policy, ring = r, per = per, at = start_of(r.newest, per, r.n), elapsed = 0 }
    end
    local whole = r.total
    for j = 0, r.n do
      local oldest = counter(r, j)
      whole = whole - oldest
      if whole <= room then
        -- least is the smallest e with floor(oldest x (per - e) / per) <= left.
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
          return w.at + ceil((j * per + least - w.elapsed) / r.n)
        end
      end
    end
    return start_of(r.newest + r.n + 1, per, r.n)
  end

  -- charge adds a cost to every ring.
  local function charge(w, cost)
    for i = 1, #w.rings do
      local r = w.rings[i]
      if r ~= w.ring then
        advance(w, r, w.at)
      end
      local units = min(cost, max(w.policy.ceiling - r.current, 0))
      r.current, r.total, w.moved = r.current + units, r.total + units, true
    end
  end

  -- save_window writes the counters. They stay until due_at, at least.
  local function save_window(w, due_at)
    for i = 1, #w.rings do
      if w.rings[i] ~= w.ring then
        due_at = max(due_at, free_at(w, w.rings[i]))
      end
    end
    states[w.key], due[w.key] = pack_window(w), due_at - base
  end

  -- drop_newest removes up to n units from a ring, from the newest sub-window on. It reports
  -- whether it removed any units.
  local function drop_newest(r, n)
    local left, counters = n, { unpack_('<' .. rep('d', r.n), r.body) }
    counters[r.n + 1] = r.current
    for i = r.n + 1, 1, -1 do
      local units = min(counters[i], left)
      counters[i], left = counters[i] - units, left - units
    end
    r.current, r.total = counters[r.n + 1], r.total - (n - left)
    r.body = pack('<' .. rep('d', r.n), unpack(counters, 1, r.n))
    return left < n
  end

  -- charge_window counts up to the cost, until the window owes the overdraft.
  local function charge_window(w)
    local p, r = w.policy, w.ring
    local oldest = counter(r, 0)
    local used = r.total - oldest + (muldiv(oldest, w.per - w.elapsed, w.per))
    local units = p.count > 0 and max(0, min(w.cost, p.count + p.owe - used)) or 0
    if units > 0 then
      charge(w, units)
      save_window(w, free_at(w, r))
      view(w)
    end
    return units
  end

  local function refund_window(w)
    local given = false
    for i = 1, #w.rings do
      local r = w.rings[i]
      advance(w, r, now)
      given = drop_newest(r, min(w.cost, r.total)) or given
    end
    if given then
      w.version = later(w.version)
      save_window(w, now + w.per)
    end
    view(w)
  end

  local function settle_window(w, all, possible)
    local p = w.policy
    if w.cost > 0 and w.mode ~= PEEK and (all or possible and p.counts) then
      charge(w, w.cost)
    end
    local retry = 0
    if w.code == OVER then
      retry = passes_at(w, p.count - w.cost) - now
    end
    local free = free_at(w, w.ring)
    local o = env.o
    out[o + 1], out[o + 2], out[o + 3], out[o + 4], out[o + 5] = w.at - now, w.used, retry, free - now, w.version
    env.o = o + 5
    if w.moved and w.mode ~= PEEK then
      save_window(w, free)
    end
  end

  return {
    policy = window_policy, open = open_window, judge = env.judge_units, settle = settle_window, refund = refund_window,
    charge = charge_window, room_at = env.units_left, load = load_window, pack = pack_window, place_of = place_of, start_of = start_of, counter = counter,
  }
end

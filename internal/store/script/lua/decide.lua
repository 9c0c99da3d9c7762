local out, o, due = { now }, 1, {}
local env, one, group

-- A run is a series of groups of one Take each, with the same policy and cost, and with
-- consecutive keys. The policy is a bucket with a whole interval. This loop decides a bucket
-- if its state has the short form and the same policy, as most states have. The functions of
-- library decide the others.
while at <= #query do
  if string.byte(query, at) == 0 then
    local kind, n, which, key, cost, least, whole, refill, horizon, algorithm
    kind, algorithm, n, which, key, cost, least, whole, refill, horizon, at = unpack_('<BBI2I2I2ddddd', query, at)
    local edge, latest, takes, grain = now + refill, now + horizon, cost * whole, horizon / 8
    local fresh = now % 4096 * 4294967296 + floor(now / 4096) % 4294967296 -- The same formula as born in state.lua.
    for i = key, key + n - 1 do
      local raw = states[i]
      local kept, version, tat, w, h = algorithm, fresh, now, whole, horizon
      if raw then
        if #raw == 33 then
          kept, version, tat, w, h = unpack_('<Bdddd', raw)
        else
          kept = nil
        end
      end
      if kept == algorithm and w == whole and h == horizon and tat <= latest then
        if tat < now then
          tat = now
        end
        local to = tat + takes
        if least > 0 then
          local granted = cost
          if to > edge then
            granted = floor((edge - tat) / whole)
            if granted < least then
              granted = least
            end
            to = tat + granted * whole
          end
          o = o + 1
          out[o] = granted
        end
        out[o + 1], out[o + 2] = tat - now, version
        o = o + 2
        if to <= edge and to > tat then
          states[i] = pack('<Bdddd', algorithm, version, to, whole, horizon)
          due[i] = floor((to - base) / grain) * grain + grain
        end
      else
        if not env then
          env, one, group = library(now, base, how, slack, states, due, out, count)
        end
        env.o = o
        one(which, i, 0, cost, least)
        o = env.o
      end
    end
  else
    if not env then
      env, one, group = library(now, base, how, slack, states, due, out, count)
    end
    env.o = o
    at = group(query, at)
    o = env.o
  end
end

local texts = {}
for i = 1, count do
  local last = due[i]
  if last then
    local ms = ceil(last / 1000) + slack
    local text = texts[ms]
    if not text then
      text = format('%.0f', ms)
      texts[ms] = text
    end
    call('SET', KEYS[i], states[i], how, text)
  end
end

if o == 3 then -- A single bucket, which is the most common call.
  return pack('<ddd', now, out[2], out[3])
elseif o <= 4000 then
  return pack('<' .. string.rep('d', o), unpack(out, 1, o))
end
local parts = {}
for i = 1, o, 4000 do
  local last = math.min(i + 3999, o)
  parts[#parts + 1] = pack('<' .. string.rep('d', last - i + 1), unpack(out, i, last))
end
return table.concat(parts)

-- name: positions
-- Whether ids wait: KEYS are the list and the hash of positions, whose empty field has the last position given. For an
-- empty list the hash starts over.
local SLICE = 1000
local length = redis.call('LLEN', KEYS[1])
if length == 0 then redis.call('UNLINK', KEYS[2]) end
local last = tonumber(redis.call('HGET', KEYS[2], '') or length)
local popped = last - length

local function slices(count, work)
  for first = 1, count, SLICE do work(first, math.min(first + SLICE - 1, count)) end
end

local function note(tasks, position)
  local noted = {'', position + #tasks}
  for n, task in ipairs(tasks) do
    noted[2 * n + 1], noted[2 * n + 2] = task, position + n
  end
  redis.call('HSET', KEYS[2], unpack(noted))
end

local function missing()
  local found, seen = {}, {}
  slices(#ARGV, function(first, till)
    local positions = redis.call('HMGET', KEYS[2], unpack(ARGV, first, till))
    for n, position in ipairs(positions) do
      local task = ARGV[first + n - 1]
      if not seen[task] and (not position or tonumber(position) <= popped) then table.insert(found, task) end
      seen[task] = true
    end
  end)
  return found
end

-- name: announce
-- Append the ids that do not wait; when most positions are of popped ids, the hash is written again from the list.
if redis.call('HLEN', KEYS[2]) > 2 * length + SLICE then
  redis.call('UNLINK', KEYS[2])
  slices(length, function(first, till) note(redis.call('LRANGE', KEYS[1], first - 1, till - 1), popped + first - 1) end)
end
local new = missing()
slices(#new, function(first, till)
  redis.call('RPUSH', KEYS[1], unpack(new, first, till))
  note({unpack(new, first, till)}, last + first - 1)
end)
redis.call('EXPIRE', KEYS[2], 86400)

-- name: missing
-- The ids that do not wait.
return missing()

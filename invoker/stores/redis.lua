-- The questions to a store, each in one run of this script and therefore atomic. See invoker/stores/redis.py.
-- ARGV: prefix of all keys, question, microseconds of the epoch or '' for the server's own, owner, arguments.
-- Times are whole microseconds, because the numbers of Lua are exact up to 2^53 only.
--
--   s:<space>  hash     key, about, ttl, created, used, items, size, seq (the number of the last change)
--   k:<key>    string   name of the space
--   i:<key>    hash     items: "<created> <updated> <bytes of about> <about><value>"
--   n:<key>    zset     their names, in order
--   h:<key>    hash     how often each owner holds the space
--   e:<key>    hash     owners that listen; 1: to items, 0: to its end only
--   g:<space>  string   why it is gone
--   ends       zset     spaces by when they expire
--   owners     zset     owners by the end of their lease
--   size, keys          bytes of all spaces; the last key
local P, owner, A = ARGV[1], ARGV[4], {unpack(ARGV, 5)}
local call = redis.call
local now
if ARGV[3] == '' then
    local time = call('TIME')
    now = time[1] * 1000000 + time[2]
else
    now = tonumber(ARGV[3])
end
local DAY = 86400
local SWEPT = 1000 -- as in invoker/stores/backend.py

local function text(number) return string.format('%.0f', number) end

local function tell(key, wants, what)
    local ears = call('HGETALL', P .. 'e:' .. key)
    for i = 1, #ears, 2 do
        if tonumber(ears[i + 1]) >= wants and call('PUBLISH', P .. 'news:' .. ears[i], what) == 0 then
            call('HDEL', P .. 'e:' .. key, ears[i])
        end
    end
end

local function finish(space, reason)
    local key = space.key
    local seq = call('HINCRBY', P .. 's:' .. space.name, 'seq', 1)
    call('DEL', P .. 's:' .. space.name, P .. 'k:' .. key, P .. 'i:' .. key, P .. 'n:' .. key)
    call('EXPIRE', P .. 'h:' .. key, DAY)
    call('ZREM', P .. 'ends', space.name)
    call('DECRBY', P .. 'size', text(space.size))
    call('SET', P .. 'g:' .. space.name, reason, 'EX', DAY)
    tell(key, 0, string.format('%s %d -1 0 0 0 %s', key, seq, reason))
    call('DEL', P .. 'e:' .. key)
end

-- When the last lease of those that hold it ends.
local function lease(key)
    local last = 0
    for _, one in ipairs(call('HKEYS', P .. 'h:' .. key)) do
        last = math.max(last, tonumber(call('ZSCORE', P .. 'owners', one) or '0'))
    end
    return last
end

local function holds(key)
    local sum, held = 0, call('HGETALL', P .. 'h:' .. key)
    for i = 1, #held, 2 do
        if tonumber(call('ZSCORE', P .. 'owners', held[i]) or '0') > now then sum = sum + tonumber(held[i + 1]) end
    end
    return sum
end

local function find(name)
    local f = call('HMGET', P .. 's:' .. name, 'key', 'ttl', 'used', 'items', 'size')
    if not f[1] then return nil, call('GET', P .. 'g:' .. name) or 'UNKNOWN' end
    local space = {name = name, key = f[1], ttl = tonumber(f[2]), items = tonumber(f[4]), size = tonumber(f[5])}
    if now >= tonumber(f[3]) + space.ttl and now >= lease(space.key) + space.ttl then
        finish(space, 'EXPIRED')
        return nil, 'EXPIRED'
    end
    return space
end

local function touch(space)
    call('HSET', P .. 's:' .. space.name, 'used', text(now))
    call('ZADD', P .. 'ends', text(now + space.ttl), space.name)
end

local function refused(reason, count) return {'refused', reason, count or 0} end

local function told(space, is_new)
    local f = call('HMGET', P .. 's:' .. space.name, 'about', 'ttl', 'created', 'items', 'size')
    return {'space', space.key, space.name, f[1], f[2], f[3], text(now), f[4], f[5], holds(space.key), is_new}
end

local function sweep()
    local late = call('ZRANGEBYSCORE', P .. 'ends', '-inf', text(now), 'LIMIT', 0, SWEPT)
    for _, name in ipairs(late) do
        local space = find(name)
        if space then call('ZADD', P .. 'ends', text(lease(space.key) + space.ttl), name) end
    end
    call('ZREMRANGEBYSCORE', P .. 'owners', '-inf', text(now - DAY * 1000000))
    return #late == SWEPT and 1 or 0
end

-- Questions that need not find a space.
local free = {}

function free.create(name, about, ttl, size, most_spaces, most_size)
    local space = find(name)
    if space then
        touch(space)
        return told(space, 0)
    end
    local function spaces() return call('ZCARD', P .. 'ends') end
    local function total() return tonumber(call('GET', P .. 'size') or '0') end
    most_spaces, most_size = tonumber(most_spaces), tonumber(most_size)
    if spaces() >= most_spaces or total() + size > most_size then sweep() end
    if spaces() >= most_spaces then return refused('SPACES', spaces()) end
    if total() + size > most_size then return refused('BYTES', total()) end
    local key = text(call('INCR', P .. 'keys'))
    call('DEL', P .. 'g:' .. name)
    call('INCRBY', P .. 'size', size)
    call('SET', P .. 'k:' .. key, name)
    call('HSET', P .. 's:' .. name, 'key', key, 'about', about, 'ttl', ttl, 'created', text(now), 'items', 0,
        'size', size, 'seq', 0)
    space = {name = name, key = key, ttl = tonumber(ttl)}
    touch(space)
    return told(space, 1)
end

function free.drop(name, is_forced)
    local space = find(name)
    if not space then return false end
    local count = holds(space.key)
    if count > 0 and is_forced == '0' then return refused('HELD', count) end
    finish(space, 'DROPPED')
    return count > 0 and {'dropped', space.key}
end

function free.release(key, count)
    if call('HINCRBY', P .. 'h:' .. key, owner, -count) <= 0 then call('HDEL', P .. 'h:' .. key, owner) end
    local name = call('GET', P .. 'k:' .. key)
    if name then touch({name = name, ttl = tonumber(call('HGET', P .. 's:' .. name, 'ttl'))}) end
end

function free.isheld(key) return holds(key) > 0 and 1 or 0 end

function free.deafen(key) call('HDEL', P .. 'e:' .. key, owner) end

free.sweep = sweep

function free.beat(lease_us) call('ZADD', P .. 'owners', text(now + lease_us), owner) end

function free.bye() call('ZREM', P .. 'owners', owner) end

-- Questions about a space that is there.
local within = {}

function within.look(space) return told(space, 0) end

function within.hold(space)
    call('HINCRBY', P .. 'h:' .. space.key, owner, 1)
    return told(space, 0)
end

function within.get(space, name)
    local item = call('HGET', P .. 'i:' .. space.key, name)
    return item and {'items', name, item}
end

-- ``least`` is where to begin, as ZRANGEBYLEX has it.
function within.scan(space, least, prefix, most)
    local found = {'items'}
    for _, name in ipairs(call('ZRANGEBYLEX', P .. 'n:' .. space.key, least, '+', 'LIMIT', 0, most)) do
        if string.sub(name, 1, #prefix) ~= prefix then break end
        found[#found + 1] = name
        found[#found + 1] = call('HGET', P .. 'i:' .. space.key, name)
    end
    return found
end

-- ``own`` is what the item is counted for without its value.
function within.put(space, name, is_there, value, expects, about, keeps, own, most_items, most_bytes, most_size)
    local old, is_new = call('HGET', P .. 'i:' .. space.key, name), 0
    local created, version, growth = now, 0, 0
    if old then
        local first, last, length, start = string.match(old, '^(%d+) (%d+) (%d+) ()')
        created, version = tonumber(first), tonumber(last)
        growth = -(own + #old - start + 1)
        if keeps == '1' then about = string.sub(old, start, start + length - 1) end
    end
    if expects ~= '' and tonumber(expects) ~= version and not (expects == '-1' and old) then return refused('CHANGED') end
    local updated = math.max(now, version + 1)
    if is_there == '0' then
        if not old then return false end
        call('HDEL', P .. 'i:' .. space.key, name)
        call('ZREM', P .. 'n:' .. space.key, name)
        call('HINCRBY', P .. 's:' .. space.name, 'items', -1)
    else
        growth = growth + own + #value + #about
        if not old and space.items >= tonumber(most_items) then return refused('ITEMS', space.items) end
        local total = tonumber(call('GET', P .. 'size') or '0')
        if growth > 0 and (space.size + growth > tonumber(most_bytes) or total + growth > tonumber(most_size)) then
            return refused('BYTES', space.size)
        end
        if not old then
            created, is_new = updated, 1
            call('ZADD', P .. 'n:' .. space.key, 0, name)
            call('HINCRBY', P .. 's:' .. space.name, 'items', 1)
        end
        call('HSET', P .. 'i:' .. space.key, name, string.format('%.0f %.0f %d ', created, updated, #about) .. about .. value)
    end
    call('HINCRBY', P .. 's:' .. space.name, 'size', text(growth))
    call('INCRBY', P .. 'size', text(growth))
    local seq = call('HINCRBY', P .. 's:' .. space.name, 'seq', 1)
    tell(space.key, 1, string.format('%s %d %.0f %d %s %d ', space.key, seq, updated, is_new, is_there, #name) .. name .. value)
    return is_there == '1' and {'written', text(created), text(updated), about}
end

-- ``wants``: 1 for items, else 0. ``initial``: 'all', 'named', or 'none'. The names follow.
function within.listen(space, wants, initial, ...)
    local ears = P .. 'e:' .. space.key
    if wants == '1' or call('HEXISTS', ears, owner) == 0 then call('HSET', ears, owner, wants) end
    local names = initial == 'named' and {...} or {}
    if initial == 'all' then names = call('ZRANGE', P .. 'n:' .. space.key, 0, -1) end
    local found = {'listening', space.key, call('HGET', P .. 's:' .. space.name, 'seq')}
    for _, name in ipairs(names) do
        local item = call('HGET', P .. 'i:' .. space.key, name)
        if item then
            found[#found + 1] = name
            found[#found + 1] = item
        end
    end
    return found
end

local op = ARGV[2]
if free[op] then return free[op](unpack(A)) end
local space, reason = find(A[1])
if not space then return refused(reason) end
touch(space)
return within[op](space, unpack(A, 2))

-- Runs commands about an index in one step: that which drops it, one that makes it, one that makes it as it was, and those
-- that limit it. ARGV: n word ... for each.
local commands, at = {}, 1
while ARGV[at] do
    local length = tonumber(ARGV[at])
    commands[#commands + 1] = {unpack(ARGV, at + 1, at + length)}
    at = at + 1 + length
end
redis.call(unpack(commands[1]))
local made = redis.pcall(unpack(commands[2]))
if made.err then redis.call(unpack(commands[3])) end
for i = 4, #commands do redis.call(unpack(commands[i])) end
if made.err then return made end
return 1

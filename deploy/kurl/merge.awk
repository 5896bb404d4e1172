# Merges three files and prints the new configuration. Variable "file" says which of them awk is reading:
#   settings  the keys that the installer sets in each run
#   live      the configuration in the cluster
#   base      all keys that the first run of the installer writes, with their defaults
# Each line is a key and its value. Lines of the output that begin with "#" are messages about the cluster's values: which
# the installer changes, and which it keeps although they differ from the default.
function value(text) {
    sub(/^[^:]*: */, "", text)
    if (text ~ /^".*"$/) text = substr(text, 2, length(text) - 2)
    return text
}
function shown(text) { text = value(text); return text == "" ? "empty" : text }
function say(text) { print "#ConfigMap kurl/ekco-config: " text }
/^$/ { next }
{
    key = tolower($0); sub(/:( .*)?$/, "", key)
    if (!((file, key) in text)) order[file, ++count[file]] = key
    text[file, key] = $0
}
END {
    for (i = 1; i <= count["base"]; i++) {
        key = order["base", i]; known[key] = 1
        differs = 0
        new = text["base", key]
        if (("settings", key) in text) new = text["settings", key]
        if (("live", key) in text) differs = value(text["live", key]) != value(new)
        if (differs && !(("settings", key) in text)) {
            say("the installer keeps " key " at " shown(text["live", key]) "; the default is " shown(new))
            new = text["live", key]
        } else if (differs && key != "storage_migration_auth_token")
            say("the installer changes " key " from " shown(text["live", key]) " to " shown(new))
        print new
    }
    for (i = 1; i <= count["live"]; i++) if (!(order["live", i] in known)) print text["live", order["live", i]]
}

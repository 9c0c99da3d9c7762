package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/headgate/headgate/rule"
)

// Bounds of the address of a shared store.
const (
	// maxServers bounds the servers in an address. A cluster reports its other nodes.
	maxServers = 64
	// maxCredential bounds the user and the password, in bytes.
	maxCredential = 1024
	// maxMaster bounds the name of a master.
	maxMaster = 255
	// mostDatabase is above every practical number of Redis databases.
	mostDatabase = 65_535
)

// storeForm is one form of a store's address.
type storeForm struct {
	scheme  string
	kind    StoreKind
	tls     bool
	port    uint16 // The default port.
	names   addressNames
	example string
	// pattern is that of the schema. A form without one is in the pattern of a form above it.
	pattern string
}

// addressNames is what an address names.
type addressNames uint8

const (
	oneServer addressNames = iota
	severalServers
	socketPath // the path of a unix socket
	srvRecords // the name of SRV records
)

// storeFormTable lists every scheme. The patterns of the schema and the words of faults come from it.
var storeFormTable = [...]storeForm{
	{"redis", KindRedis, false, 6379, oneServer, "redis://127.0.0.1:6379/0", `rediss?(\+(cluster|sentinel))?://.+`},
	{"rediss", KindRedis, true, 6379, oneServer, "rediss://redis.example.com:6379/0", ""},
	{"redis+cluster", KindRedisCluster, false, 6379, severalServers, "redis+cluster://h1:6379,h2:6379,h3:6379", ""},
	{"rediss+cluster", KindRedisCluster, true, 6379, severalServers, "rediss+cluster://h1:6379,h2:6379,h3:6379", ""},
	{"redis+sentinel", KindRedisSentinel, false, 26379, severalServers, "redis+sentinel://h1:26379,h2:26379,h3:26379/mymaster", ""},
	{"rediss+sentinel", KindRedisSentinel, true, 26379, severalServers, "rediss+sentinel://h1:26379,h2:26379,h3:26379/mymaster", ""},
	{"redis+unix", KindRedis, false, 0, socketPath, "redis+unix:///run/redis/redis.sock", `redis\+unix:///.+|redis\+unix://.+@/.+`},
	{"memcached", KindMemcached, false, 11211, severalServers, "memcached://h1:11211,h2:11211", `memcacheds?(\+srv)?://.+`},
	{"memcacheds", KindMemcached, true, 11211, severalServers, "memcacheds://h1:11211,h2:11211", ""},
	{"memcached+srv", KindMemcached, false, 0, srvRecords, "memcached+srv://_memcached._tcp.example.com", ""},
	{"memcacheds+srv", KindMemcached, true, 0, srvRecords, "memcacheds+srv://_memcached._tcp.example.com", ""},
}

// The patterns of the addresses of store and of store_per_second.
var (
	storePattern     = addressPattern("", memoryWord) //nolint:gochecknoglobals // because it is a constant from a table
	perSecondPattern = addressPattern(KindMemcached)  //nolint:gochecknoglobals // because it is a constant from a table
)

// addressPattern joins the patterns of all kinds but one, after other patterns.
func addressPattern(without StoreKind, patterns ...string) string {
	for i := range storeFormTable {
		if f := &storeFormTable[i]; f.pattern != "" && f.kind != without {
			patterns = append(patterns, f.pattern)
		}
	}
	return "^(" + strings.Join(patterns, "|") + ")$"
}

const addressAdvice = "use memory, or an address of redis, rediss, redis+cluster, redis+sentinel, redis+unix or memcached, " +
	"like redis://127.0.0.1:6379/0"

// otherSchemeTable maps schemes of other programs to the schemes of this one.
var otherSchemeTable = map[string]string{
	"unix": "redis+unix", "redis+socket": "redis+unix", "redis-unix": "redis+unix", "redis-socket": "redis+unix",
	"valkey": "redis", "valkeys": "rediss", "redis+tls": "rediss", "redis+ssl": "rediss", "redis-sentinel": "redis+sentinel",
	"sentinel": "redis+sentinel", "cluster": "redis+cluster", "redis-cluster": "redis+cluster", "memcache": "memcached", "mc": "memcached",
	"memcaches": "memcacheds", "memcached+tls": "memcacheds", "memcached+ssl": "memcacheds",
}

// addressFault is a fault of a store's address, at offset in bytes. It never repeats a part of a
// possible password.
type addressFault struct {
	offset       int
	problem, fix string
}

// storeText is the address of a store while parseStore reads it.
type storeText struct {
	text  string
	form  *storeForm
	store *SharedStore
}

// parseStore reads the address of a shared store.
func parseStore(text string) (*SharedStore, *addressFault) {
	form, bad := storeFormOf(text)
	if bad != nil {
		return nil, bad
	}
	store := defaultShared()
	store.Kind, store.TLS = form.kind, form.tls
	t := &storeText{text, form, &store}
	begin := len(form.scheme) + len("://")
	end := len(text)
	if i := strings.IndexAny(text[begin:], "/?#"); i >= 0 {
		end = begin + i
	}
	if strings.Contains(text[end:], "@") {
		return nil, &addressFault{end, "has a /, ? or # before its @", "write it percent-encoded in user and password: %2F, %3F or %23"}
	}
	if at := strings.LastIndexByte(text[begin:end], '@'); at >= 0 {
		if bad := t.user(begin, begin+at); bad != nil {
			return nil, bad
		}
		begin += at + 1
	}
	if form.names == socketPath {
		return t.store, t.socket(begin, end)
	}
	if form.names == srvRecords {
		if bad := t.records(begin, end); bad != nil {
			return nil, bad
		}
	} else if bad := t.servers(begin, end); bad != nil {
		return nil, bad
	}
	if bad := t.path(end); bad != nil {
		return nil, bad
	}
	return t.store, nil
}

// storeFormOf returns the form for the scheme of an address.
func storeFormOf(text string) (*storeForm, *addressFault) {
	scheme, _, found := strings.Cut(text, "://")
	words := make([]string, 0, len(storeFormTable)+1)
	for i := range storeFormTable {
		if storeFormTable[i].scheme == scheme && found {
			return &storeFormTable[i], nil
		}
		words = append(words, storeFormTable[i].scheme)
	}
	if !found {
		// The text may be an address that lacks a slash, or a password.
		scheme, _, _ = strings.Cut(text, ":")
		words = append(words, "memory")
	}
	near, known := otherSchemeTable[strings.ToLower(scheme)]
	if !known {
		near = rule.Nearest(scheme, words)
	}
	fix := addressAdvice
	if near != "" {
		fix = "did you mean " + near + "?"
		if i := slices.IndexFunc(storeFormTable[:], func(f storeForm) bool { return f.scheme == near }); i >= 0 {
			fix = "write it like " + storeFormTable[i].example
		}
	}
	problem := "the store is unknown"
	if found {
		problem = "the scheme of the store is unknown"
	}
	return nil, &addressFault{0, problem, fix}
}

// example returns an example of an address, with a database.
func example(form *storeForm) string {
	if form.kind == KindRedisSentinel {
		return form.example + "/0"
	}
	return form.example
}

// fault returns a fault at an offset of the whole text. Its fix shows an example of the form.
func (t *storeText) fault(offset int, problem string) *addressFault {
	return &addressFault{offset, problem, "write it like " + t.form.example}
}

// user reads user:password from begin to end.
func (t *storeText) user(begin, end int) *addressFault {
	if t.form.kind == KindMemcached {
		return &addressFault{begin, "has a user or a password, which Memcached does not support", "remove the text up to the @"}
	}
	text := t.text[begin:end]
	if strings.Contains(text, "@") {
		return &addressFault{begin, "has two @", "write user and password once, before the first server, and an @ within them as %40"}
	}
	if strings.ContainsFunc(text, func(c rune) bool { return !strings.ContainsRune(locationLetters, c) || c == '[' || c == ']' }) {
		const problem = "has a character in user or password that is not allowed in a URL"
		const fix = "write it percent-encoded, like %20 for a space"
		return &addressFault{begin, problem, fix}
	}
	user, password, two := strings.Cut(text, ":")
	for _, part := range []struct {
		text string
		into *string
	}{{user, &t.store.User}, {password, (*string)(&t.store.Password)}} {
		decoded, err := url.PathUnescape(part.text)
		switch {
		case err != nil:
			return &addressFault{begin, "has a % in user or password without two hexadecimal digits after it", "write %25 for a % itself"}
		case len(decoded) > maxCredential:
			return &addressFault{begin, fmt.Sprintf("has a user or a password of more than %d bytes", maxCredential), "use a shorter one"}
		}
		*part.into = decoded
	}
	switch {
	case two && password == "":
		const fix = "write user:password@, or remove the colon and set store_password_file; for a user with nopass, write any " +
			"password, like user:none@"
		return &addressFault{begin, "has no password after the colon", fix}
	case text == "":
		return &addressFault{begin, "has nothing before its @", "remove the @, or write user:password@"}
	}
	return nil
}

package config

// descriptionTable says in a sentence or two what each field is, by its path: []
// are the entries of a list, and * is a field of any name.
var descriptionTable = map[string]string{
	"version": "Version of the format.",
	"store": "Where counters live: memory is the memory of this process; redis://, rediss:// (TLS), redis+cluster://, " +
		"redis+sentinel:// and memcached:// are shared by instances.",
	"store_timeout":                "Budget of one decision, all rules together; a store in memory answers at once.",
	"store_password_file":          "File with the password of Redis, in place of one in the address.",
	"store_sentinel_password_file": "File with the password of the sentinels themselves.",
	"store_tls":                    "With which files a store of rediss:// is spoken to.",
	"store_tls.ca":                 "PEM file of authorities that take the place of the system's.",
	"store_tls.cert":               "PEM file of the certificate that the store is shown.",
	"store_tls.key":                "PEM file of that certificate's key.",
	"store_tls.server_name":        "Name in the servers' certificates. Without it, each server's host.",
	"redis_slots":                  "How many hash slots of a Redis Cluster keys are spread over.",
	"memcached_counters":           "Whether Memcached counts a fixed_window in one atomic step, and forgets more when limits change.",
	"prefetch": "Whether units are taken from a shared store ahead of need: off, auto (by demand), or how many " +
		"at once.",
	"prefetch.batch": "How many units are taken at once; auto, unless told otherwise, lets demand say.",
	"prefetch.hold":  "For how long they may be spent, 1ms to 1h. Without it, the two-hundredth part of the limit's period.",
	"deny_cache": "How long a key that is known to be over its limit is refused without asking the shared store; " +
		"0 always asks.",
	"breaker":           "When a server of a shared store counts as away, and when it is asked again.",
	"breaker.failures":  "How many calls must fail in a row.",
	"breaker.probe":     "Wait before the server is asked again; each failure doubles it. 1ms to 10m.",
	"breaker.max_probe": "The longest such wait; 1ms to 10m.",
	"fallback": "What a rule answers when its store cannot; local counts in this instance's memory, against " +
		"local_share of each limit.",
	"local_share":      "This instance's part of each limit for fallback local, 1% to 100%.",
	"namespace":        "Part of every key: instances with different namespaces share no counters on one store.",
	"max_memory":       "Bound of all state in memory.",
	"on_full":          "What a new key gets when every place holds a key that is being limited.",
	"shutdown_timeout": "How long a stop waits for requests in flight.",
	"evaluate": "all_or_nothing: when one rule refuses, the others that match take nothing; independent: each rule " +
		"counts on its own.",

	"log":           "What is logged.",
	"log.level":     "The least level that is logged.",
	"log.decisions": "Which decisions are logged; sampled is a bounded number a second, refusals first.",
	"log.keys":      "How logs and ctl top name keys: hash is a keyed hash of each value, plain the values themselves, off no key.",
	"log.keys_secret_file": "File with the secret of log.keys hash, so that several instances name a key alike; without it, " +
		"each start makes its own.",
	"log.access":      "Form of the access log.",
	"log.access_file": "File of the access log; without it, standard output. It is opened again on a reload.",

	"identity": "Whom to believe about who sends a request.",
	"identity.trusted_proxies": "Networks and addresses of proxies whose X-Forwarded-For and user-IP headers are believed; unix " +
		"is peers on unix sockets.",
	"identity.user_ip_headers": "Headers that trusted proxies set to the user's address; the first that is there counts.",
	"identity.region_db":       "MaxMind database of countries, for key region.",
	"identity.jwt":             "Which bearer tokens are good, for keys jwt:CLAIM.",
	"identity.jwt.keys":        "File of public keys that tokens are verified with, JWKS or PEM.",
	"identity.jwt.issuer":      "What the token's iss must be.",
	"identity.jwt.audience":    "What must be in the token's aud.",
	"identity.jwt.leeway":      "How far clocks may differ; at most 10m.",

	"rules":                      "Every rule that matches a request counts it; the strictest answer is the answer.",
	"rules[].name":               "1 to 64 letters, digits, -, _ and . that no other rule has; callers, metrics and logs show it.",
	"rules[].match":              "Which requests the rule speaks for: all fields that are there must fit. Without it, every request.",
	"rules[].match.path":         "The path, exactly, or a prefix: /search/* is /search and all below.",
	"rules[].match.methods":      "One of these methods, in capitals.",
	"rules[].match.hosts":        "One of these hosts, without port; *.example.com is every name below example.com.",
	"rules[].match.headers":      "Each of these headers with this value; * is any value.",
	"rules[].match.descriptors":  "Each of these entries that a decision server was asked with, with this value; * is any value.",
	"rules[].key":                "One to three parts, which together say who is counted.",
	"rules[].algorithm":          "How units are counted.",
	"rules[].limits":             "How much per time, like 500/2s; a request must pass all of them.",
	"rules[].burst":              "Units that may pass at once, or the length of a leaky bucket's queue. Without it, the limit's count.",
	"rules[].sub_windows":        "Counters for one period of a sliding window.",
	"rules[].count_rejected":     "Whether refused attempts count too.",
	"rules[].cost":               "Units that a request takes, or the header in which a request states them.",
	"rules[].max_cost":           "What a request may state at most. Without it, what the limits ever admit at once.",
	"rules[].soft":               "Percentage of a limit, 1% to 99%, above which a request passes with a warning.",
	"rules[].mode":               "enforce acts on what is decided; shadow decides and reports; off does not look.",
	"rules[].prefetch":           "Whether units are taken ahead of need. Without it, what the top level says.",
	"rules[].prefetch.batch":     "How many units are taken at once; auto, unless told otherwise, lets demand say.",
	"rules[].prefetch.hold":      "For how long they may be spent. Without it, the two-hundredth part of the limit's period.",
	"rules[].fallback":           "What the rule answers when its store cannot. Without it, what the top level says.",
	"rules[].overrides":          "Limits of single values of the key's first part, in place of the rule's.",
	"rules[].overrides.*.limits": "How much per time, in place of the rule's limits.",
	"rules[].overrides.*.burst":  "Burst of these limits. Without it, their count.",
	"rules[].ban":                "For how long a key is refused that makes too many attempts.",
	"rules[].ban.after": "How many attempts are too many, in a time that begins with the key's first. Without it, " +
		"the rule's first limit.",
	"rules[].ban.for":   "How long the ban lasts beyond that time; 1s to 367d.",
	"rules[].on_exceed": "What a request over the limit gets. Without it, a refusal.",
	"rules[].on_exceed.action": "reject refuses; delay lets the request wait; redirect names another place; degrade lets " +
		"it pass, marked.",
	"rules[].on_exceed.status": "HTTP status of a refusal: 429 unless told otherwise, and 302 for redirect, which has 302, " +
		"303, 307 or 308.",
	"rules[].on_exceed.max_wait":    "How long a request may wait; beyond that it is refused. 1ms to 1d.",
	"rules[].on_exceed.location":    "Where to: a URL of http or https, or a path. {path} is filled in with the request's path, escaped.",
	"rules[].on_exceed.header":      "Header that tells the service to answer with less.",
	"rules[].on_exceed.value":       "Value of that header.",
	"rules[].on_exceed.hard":        "Limit above which requests are refused after all.",
	"rules[].on_exceed.max_waiters": "How many requests may wait for the rule, all keys together. Each holds a connection.",

	"proxy": "What headgate proxy serves.",
	"proxy.listen": "Where clients connect: host:port, :port, unix:/path of a socket, or systemd " +
		"(systemd:NAME) for the socket that the process was started with.",
	"proxy.tls":             "How clients are served with TLS. The files are read again when they change.",
	"proxy.tls.cert":        "PEM file of the server's certificate and its chain.",
	"proxy.tls.key":         "PEM file of the certificate's key.",
	"proxy.tls.client_ca":   "PEM file of the authorities of client certificates. Without it, clients are asked for none.",
	"proxy.tls.client_auth": "Whether clients must show a certificate: require, unless told otherwise, or request.",
	"proxy.proxy_protocol": "Networks and addresses of balancers that begin each connection with the PROXY protocol; " +
		"unix is peers on a unix socket.",
	"proxy.upstream":                 "The service behind: http://, https:// or h2c:// with host and port, or unix:/path of a socket.",
	"proxy.upstream_tls":             "How an upstream of https is reached. The files are read again when they change.",
	"proxy.upstream_tls.ca":          "PEM file of authorities that take the place of the system's.",
	"proxy.upstream_tls.cert":        "PEM file of the certificate that the service is shown.",
	"proxy.upstream_tls.key":         "PEM file of that certificate's key.",
	"proxy.upstream_tls.server_name": "Name in the service's certificate. Without it, the upstream's host.",
	"proxy.read_header_timeout":      "How long a caller may take to send a request's head; 1ms to 1d.",
	"proxy.idle_timeout":             "How long a connection is kept without a request; 1ms to 1d.",
	"proxy.body_idle_timeout":        "How long a body may stand still, or a write to the upstream may take; 1ms to 1d.",
	"proxy.upstream_timeout":         "How long the upstream may take to begin its response; 1ms to 1d.",
	"proxy.max_header":               "Bound of the fields of a request; 1KiB to 1MiB.",
	"proxy.max_connections": "Bound of the connections of clients; a further one takes the place of the one that is idle " +
		"longest, and waits if none is.",
	"proxy.max_connections_per_address": "Bound of the connections of one IPv4 address or IPv6 /64, those of trusted_proxies " +
		"excepted; further ones are closed.",
	"proxy.max_requests": "Bound of the requests in flight over all connections; further ones are answered 503.",
	"proxy.request_id":   "Header that carries a request's id to the service and back; off is none.",
	"proxy.header_style": "Which fields tell callers of their limits: draft, x-ratelimit, draft03 or none.",

	"fair_share": "Divides the capacity of the service among its clients, before the rules are asked.",
	"fair_share.client": "What of a request names its client: one part of a key, like header:X-Client-Id. Each client " +
		"has a share.",
	"fair_share.match": "Which requests fair share is asked about: all fields that are there must fit. Without it, every " +
		"request.",
	"fair_share.match.path":        "The path, exactly, or a prefix: /search/* is /search and all below.",
	"fair_share.match.methods":     "One of these methods, in capitals.",
	"fair_share.match.hosts":       "One of these hosts, without port; *.example.com is every name below example.com.",
	"fair_share.match.headers":     "Each of these headers with this value; * is any value.",
	"fair_share.match.descriptors": "Each of these entries that a decision server was asked with, with this value; * is any value.",
	"fair_share.exempt":            "Requests that fair share passes over: those that fit any entry. Their work is not counted.",
	"fair_share.exempt.paths":      "Paths, exact or a prefix like /probes/*.",
	"fair_share.exempt.methods":    "Methods, in capitals.",
	"fair_share.exempt.addresses":  "Addresses and networks of the peer; no header says otherwise.",
	"fair_share.anonymous":         "reject refuses a request that names no client; any other word is the client that it counts as.",
	"fair_share.capacity":          "How many units the service takes in a cycle from all clients together.",
	"fair_share.cycle":             "How long shares hold; 10ms to 1h.",
	"fair_share.reservation":       "The part of its default share that an idle client keeps, 0% to 100%; the rest is lent.",
	"fair_share.division": "loan lends in proportion to what clients ask beyond their default shares; max_min satisfies " +
		"small demands first.",
	"fair_share.reclaim": "at_once serves an owner that comes back at once; next_cycle makes it wait for the next cycle.",
	"fair_share.new_clients_per_cycle": "How many new names get shares of their own in one cycle; further ones share one " +
		"bucket, others.",
	"fair_share.forget_after": "After how many cycles without a request a client is forgotten.",
	"fair_share.max_clients":  "Bound of the clients with shares of their own, those of weights among them.",
	"fair_share.weights":      "Parts of named clients in proportion to 1, the others'. They are known from the start.",
	"fair_share.cost":         "Units that a request takes of the capacity, or the header in which a request states them.",
	"fair_share.max_cost":     "What a request may state at most. Without it, the capacity.",
	"fair_share.count_once": "Header that retries repeat, like header:Idempotency-Key: attempts of one request count once in a " +
		"client's demand. Without it, each counts.",
	"fair_share.trusted_names": "true says that clients cannot invent names: a gateway sets them. Names that come later " +
		"then have default shares as all others at once.",
	"fair_share.mode": "enforce refuses what is over a client's share; shadow reports it and refuses nothing; off does not look.",

	"paths": "What of a path the service disregards. Rules match and count such paths as one; the service gets the path " +
		"as sent.",
	"paths.ignore_case":           "The service takes /V1/Product for /v1/product.",
	"paths.ignore_trailing_slash": "The service takes /v1/product/ for /v1/product.",
	"paths.ignore_parameters":     "The service takes /v1/product;x=1 for /v1/product.",

	"admin":        "Where an instance tells of itself.",
	"admin.listen": "host:port of /metrics, /api/v1 and /debug/pprof; off serves none of it.",
	"admin.health": "host:port of /healthz, /readyz and /metrics alone; off serves none of it.",
	"admin.hosts": "Host names, without port, by which scrapers ask for /metrics; addresses and localhost are always " +
		"accepted.",
}

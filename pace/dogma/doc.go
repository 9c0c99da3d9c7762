// Package dogma reads a pacer's limit from a document on a Central Dogma server, which is
// a configuration repository with versions. A commit of a new version changes the limit of
// all running instances.
//
//	source, err := dogma.New(dogma.Config{
//		URL: "https://dogma.example:36462", Project: "campaign", Repository: "limits",
//		Path: "/providers/mail.json", TokenFile: "/run/secrets/dogma", Index: index,
//	})
//	...
//	mail, err := pace.New(pace.Config{Provider: "mail", Source: source})
//
// The document has the format of [pace.ParseDocument]: {"limit": "50000/s", "instances": 96}.
// It can also be one object of a larger document, which a JSON path selects. Each instance's
// own configuration sets the instance's index. For example, a Kubernetes StatefulSet numbers
// its pods.
//
// # How a change arrives
//
// An instance first reads the document and then watches it. A watch is a request that the
// server answers when a newer revision has other content, or after Wait. The instance sends
// the next watch one second after an answer. After a failure, the instance pauses, reads the
// document again and then watches. The first pause is two seconds, the second four, and so on
// up to a minute. Each pause varies by up to a fifth, so that instances do not retry together.
//
// Every instance that reaches the server therefore knows a change about a second after its
// commit. A change takes effect at the edge of a window. A change that lowers the instance's
// part waits for the next edge. A change that raises the part waits for the first edge after
// Settle, when all other instances have lowered their parts. To add instances, commit the
// higher number before the new instances start. To remove instances, commit the lower number
// after they have ended.
//
// An instance may be unable to reach the server during a change, or be in a pause after a
// failure. The instance then learns the change later than Settle: up to 90 s after the server
// can be reached again. A connection that died silently adds up to Wait. Until then the
// instance uses its old part. If other instances have raised their parts meanwhile, the limit
// is exceeded by at most the old parts of the late instances.
//
// # When the server is unreachable
//
// The last plan stays valid, forever or for HoldFor, because an outage of the configuration
// server must not stop the calls. Each failure is reported to [pace.Receiver.Fault]. An
// invalid version of the document is reported there once, and the last valid one is kept.
//
// The server may have older revisions than before, because it was restored from a backup
// or because a replica is stale. The last plan is then kept too: only newer revisions are
// applied. To apply an older revision, commit the document again or restart the instances.
//
// # Security
//
// Answers are limited to 64 KiB and to the time of a watch. The token is sent only to the
// host of URL: redirects are not followed, and errors never contain the token. Use https
// on networks that others can read.
//
// # Supported servers
//
// The tests use a server that follows the protocol in the sources of Central Dogma's server
// and clients. The package was not tested with Central Dogma itself. It needs a server with
// the preference notify-entry-not-found, which was added at the end of 2021. Older servers
// refuse watches, and the document is then read once a minute.
package dogma

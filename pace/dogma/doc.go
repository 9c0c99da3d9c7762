// Package dogma tells a pacer its limit from a document on a Central Dogma server, a
// configuration repository with versions: whoever commits a new version of the document
// changes the limit of all instances that run.
//
//	source, err := dogma.New(dogma.Config{
//		URL: "https://dogma.example:36462", Project: "campaign", Repository: "limits",
//		Path: "/providers/mail.json", TokenFile: "/run/secrets/dogma", Index: index,
//	})
//	...
//	mail, err := pace.New(pace.Config{Provider: "mail", Source: source})
//
// The document is as [pace.ParseDocument] says, {"limit": "50000/s", "instances": 96};
// or one object of a larger document, which a JSON path picks out. Which of the
// instances this one is, its own configuration says: a StatefulSet of Kubernetes, for one,
// numbers its pods.
//
// # How a change comes
//
// The document is read at the start. Then the server is asked to answer as soon as a
// newer revision has another content, for Wait at a time: a watch. One second after an
// answer it is asked again. After a failure the document is read anew before it is
// watched: in two seconds, then four, up to a minute, each up to a fifth more or
// less, so that instances do not come all at once.
//
// So a change is known to every instance that reaches the server within about a second
// of its commit. It holds from the next window's edge: at once where it lessens an
// instance's part, and after Settle where it raises it, when all others have lessened
// theirs. Commit that there are more instances before you start them, and that there
// are fewer when they have ended.
//
// An instance that cannot reach the server when a change comes, or pauses after a
// failure, knows of it later than Settle: up to 90 s after the server can be reached
// again, and up to Wait later still when its connection died without a sign. Till then it
// takes its old part, and where the others have gone up meanwhile, all together exceed
// the limit by at most the old parts of those that are late.
//
// # When the server is lost
//
// The last plan stays, for ever or for HoldFor: a configuration server that is down must
// not stop the calls. Each failure is a [pace.Receiver.Fault]. So is a version of the
// document that is not valid, once, and then the last good one stays. When the server
// has older revisions than it had, because it was set back to a backup or because one of
// its replicas is behind, the last plan stays too: only newer revisions are applied.
// Commit the document anew, or restart the instances to take an older one.
//
// # What is trusted
//
// Answers are read up to 64 KiB and within the time of a watch. The token is sent to
// the host of URL only: redirects are not followed, and no error has the token in it.
// Use https where others can listen.
//
// # What it was tested with
//
// It was tested with a server of its tests that follows the protocol as the sources of
// Central Dogma's server and clients have it, and not with Central Dogma itself. It
// needs a server that knows the preference notify-entry-not-found, which came at the
// end of 2021: one that does not refuses watches, and the document is read once a minute.
package dogma

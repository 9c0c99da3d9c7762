// Package prepared is the registry of the policies that a store has prepared. It is what
// Prepare and Release of every store are made of.
//
// Equal policies have one id and count their users. A policy without users is released:
// no Op may name it any more, and its receipts stay valid. It is freed when no live state
// depends on it, and its place is then used for another policy under another id. Looking
// a policy up takes no lock. docs/decisions/0018-limits-are-released.md has the reasons.
package prepared

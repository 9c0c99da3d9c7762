// Package prepared is the registry of the policies that a store has prepared. Every store
// implements Prepare and Release with this registry.
//
// Equal policies have one id and count their users. A policy without users is released: an Op
// that names it fails, and its receipts stay valid. The registry frees the policy when no
// live state depends on it. Another policy then gets its place, under another id. A lookup
// takes no lock. docs/decisions/0018-limits-are-released.md gives the reasons.
package prepared

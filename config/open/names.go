package open

import "github.com/headgate/headgate/internal/store/prefetch"

// Prefetch is the store in front of a shared store, which takes units ahead of need, and refuses keys that are known
// to be over their limits.
type Prefetch = prefetch.Store

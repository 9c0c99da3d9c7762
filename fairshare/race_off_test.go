//go:build !race

package fairshare

const raced = false

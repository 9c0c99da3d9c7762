package httplimit

import "github.com/headgate/headgate/internal/fields"

// Style is the form of the rate limit fields in a response.
type Style = fields.Style

const (
	// Draft means RateLimit-Policy and RateLimit, as in draft-ietf-httpapi-ratelimit-headers-11.
	Draft Style = fields.Draft
	// XRateLimit means X-RateLimit-Limit, -Remaining and -Reset, in seconds from now.
	XRateLimit Style = fields.XRateLimit
	// Draft03 means RateLimit-Limit, -Remaining and -Reset, as in the drafts up to 06.
	Draft03 Style = fields.Draft03
	// XRateLimitEpoch is XRateLimit with X-RateLimit-Reset as the Unix time in seconds, as GitHub's API has it.
	XRateLimitEpoch Style = fields.XRateLimitEpoch
	// None omits these fields. Retry-After and Headgate-Warning are still sent.
	None Style = fields.None
)

package fields

import "fmt"

// Style is the form of the rate limit fields in a response.
type Style uint8

const (
	// Draft means RateLimit-Policy and RateLimit, as in draft-ietf-httpapi-ratelimit-headers-11.
	Draft Style = iota
	// XRateLimit means X-RateLimit-Limit, -Remaining and -Reset, in seconds from now.
	XRateLimit
	// Draft03 means RateLimit-Limit, -Remaining and -Reset, as in the drafts up to 06.
	Draft03
	// XRateLimitEpoch is XRateLimit with X-RateLimit-Reset as the Unix time in seconds, as GitHub's API has it.
	XRateLimitEpoch
	// None omits these fields. Retry-After and Headgate-Warning are still sent.
	None
)

// styleNames has the words of configurations, in the order of the constants.
var styleNames = [...]string{"draft", "x-ratelimit", "draft03", "x-ratelimit-epoch", "none"}

// String returns the word that configurations use.
func (s Style) String() string {
	if int(s) < len(styleNames) {
		return styleNames[s]
	}
	return fmt.Sprintf("style(%d)", uint8(s))
}

// ParseStyle reads the word that configurations use.
func ParseStyle(word string) (Style, bool) {
	for i, name := range styleNames {
		if name == word {
			return Style(i), true
		}
	}
	return 0, false
}

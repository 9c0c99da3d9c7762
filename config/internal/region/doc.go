// Package region finds the country of an address in a database of MaxMind's format
// (.mmdb). The package implements the Regions of a rule.Identity, for rules with key region.
//
// The package accepts every database with records that have country.iso_code:
// GeoLite2-Country, and GeoIP2-Country, City and Enterprise. [Open] reads the full file
// into memory. A memory mapping would end the process if the file is truncated in place.
// A new file needs a new call of Open.
//
// [DB.Region] decodes only the code, allocates nothing, and takes a fraction of a
// microsecond. An address without a code of two capital letters has no region.
//
// Start with region.go. open.go reads and checks the file.
package region

package open

import "github.com/headgate/headgate/config/internal/region"

// RegionDB finds the region of an address, for config.Config.GuardConfig.
type RegionDB = region.DB

// Region reads a region database: a file in the format MMDB.
func Region(path string) (*RegionDB, error) { return region.Open(path) }

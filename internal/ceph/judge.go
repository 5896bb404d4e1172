package ceph

// Harmless reports whether the check does not concern the safety of data. An unknown code, or a code with severity
// HEALTH_ERR, is not harmless. EKCO respects a mute, except for lost, damaged or unserved data and full OSDs: a
// mute is often older than the loss that it hides, and Ceph removes it only if the check gets worse.
func (c Check) Harmless() bool {
	if c.Muted {
		return c.MuteCounts()
	}
	return harmlessCodes[c.Code] && c.Severity != HealthErr
}

// MuteCounts reports whether EKCO respects a mute of the check. EKCO ignores mutes about data that is lost,
// damaged or not served, and about full OSDs.
func (c Check) MuteCounts() bool { return !ignoredMuteCodes[c.Code] }

var ignoredMuteCodes = map[string]bool{
	"OBJECT_UNFOUND": true, "PG_DAMAGED": true, "OSD_SCRUB_ERRORS": true, "PG_AVAILABILITY": true,
	"PG_BACKFILL_FULL": true, "PG_RECOVERY_FULL": true,
	"OSD_FULL": true, "OSD_BACKFILLFULL": true, "OSD_NEARFULL": true, "POOL_FULL": true, "POOL_BACKFILLFULL": true, "POOL_NEARFULL": true,
}

// Down reports whether the check means that OSDs are down.
func (c Check) Down() bool { return downCodes[c.Code] }

var downCodes = map[string]bool{
	"OSD_DOWN": true, "OSD_HOST_DOWN": true, "OSD_CHASSIS_DOWN": true, "OSD_RACK_DOWN": true,
	"OSD_ROW_DOWN": true, "OSD_DATACENTER_DOWN": true, "OSD_ROOT_DOWN": true,
}

// OSDOrphan is the code for OSDs that are in the CRUSH map but not in the OSD map. "ceph osd rm" causes this.
const OSDOrphan = "OSD_ORPHAN"

// harmlessCodes are the codes about statistics, settings, speed and work that Ceph does later. They come from
// Ceph's documentation of health checks.
var harmlessCodes = map[string]bool{
	"BLUESTORE_FRAGMENTATION": true, "BLUESTORE_LEGACY_STATFS": true, "BLUESTORE_NO_PER_PG_OMAP": true,
	"BLUESTORE_NO_PER_POOL_OMAP": true, "BLUEFS_SPILLOVER": true, "LARGE_OMAP_OBJECTS": true, "MON_DISK_BIG": true,
	"OLD_CRUSH_STRAW_CALC_VERSION": true, "OLD_CRUSH_TUNABLES": true,
	"POOL_HAS_TARGET_SIZE_BYTES_AND_RATIO": true, "POOL_TARGET_SIZE_BYTES_OVERCOMMITTED": true,
	"AUTH_INSECURE_GLOBAL_ID_RECLAIM": true, "AUTH_INSECURE_GLOBAL_ID_RECLAIM_ALLOWED": true,
	"DASHBOARD_DEBUG": true, "MDS_INSUFFICIENT_STANDBY": true, "MON_CLOCK_SKEW": true, "MON_DISK_LOW": true, "MON_DOWN": true, "MON_MSGR2_NOT_ENABLED": true,
	"OSD_NO_DOWN_OUT_INTERVAL": true, "OSD_UPGRADE_FINISHED": true, "PG_NOT_DEEP_SCRUBBED": true, "PG_NOT_SCRUBBED": true,
	"POOL_APP_NOT_ENABLED": true, "POOL_NO_REDUNDANCY": true, "POOL_PG_NUM_NOT_POWER_OF_TWO": true,
	"POOL_TOO_FEW_PGS": true, "POOL_TOO_MANY_PGS": true, "RECENT_CRASH": true, "RECENT_MGR_MODULE_CRASH": true,
	"TELEMETRY_CHANGED": true, "TOO_FEW_OSDS": true, "TOO_FEW_PGS": true, "TOO_MANY_PGS": true,
}

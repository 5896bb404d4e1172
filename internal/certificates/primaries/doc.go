// Package primaries knows the certificates of the control planes of a cluster: what programs on the
// primaries have found, what is served, and what the API server says of the components. It changes
// nothing but the ConfigMap in which it writes down for others when certificates were looked at.
package primaries

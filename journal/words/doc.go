// Package words is the message catalog. It has a [Row] for each type of event, with the sentence, the log line, the
// Kubernetes Event and the severity. The package itself has the tables for the engine's events. Each capability passes
// its own table to [New] as a [Component].
//
// The texts may contain control characters from the cluster. The code that prints them must remove these.
package words

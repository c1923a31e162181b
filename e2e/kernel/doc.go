// Package kernel tests verdicts, tuning and measurements on the real kernel TCP of labs.
package kernel

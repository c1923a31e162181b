// Package testenv is what tests of several packages share: free ports.
package testenv

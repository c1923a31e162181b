package main

import "strings"

// product is a program of a release, with archives, packages and an image of its own.
type product struct {
	name        string // of the program, its package and its image
	summary     string
	description string
	linux       bool // built for Linux only
	profiled    bool // built with the profile
	units       []string
	recommends  []string // packages
}

// built is a product for a system.
type built struct {
	product string
	target
}

var fullpipe = product{name: "fullpipe", profiled: true, summary: summary, description: description,
	units: []string{"fullpipe.service", "fullpipe-watch.service", "fullpipe-recheck.service",
		"fullpipe-recheck-once.service", "fullpipe-recheck-once.timer", "fullpipe-agent.service"}}

// hub is a product of its own: its NATS server would be a third of the other program.
var hub = product{name: "fullpipe-hub", linux: true, summary: "measure the paths between many hosts, and show what limits them",
	description: `measure the paths between many hosts, and show what limits them
fullpipe-hub orders tests between hosts that run fullpipe agent, stores the results
and shows in a grid what limits each path.`,
	units: []string{"fullpipe-hub.service"}, recommends: []string{"fullpipe"}}

var products = []product{fullpipe, hub}

// owns reports whether a manual page or a completion is of this product: fullpipe-hub-serve.1 is the hub's.
func (p product) owns(page string) bool {
	ofHub := strings.HasPrefix(strings.TrimPrefix(page, "_"), hub.name)
	return ofHub == (p.name == hub.name)
}

// isFor reports whether a product is built for a system.
func (p product) isFor(t target) bool { return !p.linux || t.os == "linux" }

GO ?= go
export CGO_ENABLED = 0
# One set of flags for all targets, so that they share what is compiled; vet has a step of its own.
export GOFLAGS ?= -trimpath -vet=off

BIN = bin/fullpipe

# What the compiler is told of the busiest functions. It is not named default.pgo: go vet, go test and go build would
# compile everything a second time with it.
PROFILE = cmd/fullpipe/busy.pgo

.PHONY: all
all: build
	@echo 'built $(BIN); try it on two lab hosts: make demo; install it: sudo make install'

.PHONY: build
build: ## one static binary in bin/
	$(GO) build -pgo=$(PROFILE) -o $(BIN) ./cmd/fullpipe

.PHONY: hub
hub: ## the hub of a fleet, bin/fullpipe-hub
	$(GO) build -o bin/fullpipe-hub ./cmd/fullpipe-hub

.PHONY: profile
profile: ## writes that anew, from diagnosing recordings (a minute)
	$(GO) test ./internal/diagnose -run '^$$' -bench BenchmarkDiagnose -benchtime 30s -cpuprofile $(PROFILE) -o /dev/null

.PHONY: generate
generate: ## the Go code of the pages, from their *.templ files
	templ=github.com/a-h/templ/cmd/templ@$$($(GO) list -m -f '{{.Version}}' github.com/a-h/templ) && \
		$(GO) run $$templ fmt internal && $(GO) run $$templ generate

.PHONY: demo
demo: build ## the main job on two embedded labs, in under two minutes
	@.ci/demo $(BIN)

.PHONY: demo-ui
demo-ui: build ## the pages of `fullpipe ui` on a history measured in the lab now, its dates shifted over two weeks (five minutes)
	@$(GO) run -C bench ./demoui -program $(CURDIR)/$(BIN) $(if $(NO_OPEN),-no-open)

.PHONY: demo-fleet
demo-fleet: build hub ## a hub and eight hosts in namespaces of this machine: the grid with what limits each path (two minutes)
	@$(GO) run -C bench ./fleetdemo -program $(CURDIR)/$(BIN) -hub $(CURDIR)/bin/fullpipe-hub $(if $(NO_OPEN),-no-open)

.PHONY: check
check: ## unit tests, goldens, recordings, scripts: no root, nothing installed, no labs
	$(GO) vet ./...
	$(GO) test -json -short -timeout 5m $$($(GO) list ./... | grep -v /e2e/) | GO="$(GO)" .ci/summary
	cd bench && $(GO) vet ./... && $(GO) test -short -timeout 5m ./...

.PHONY: words
words: ## private words by folder, when counting began and now; lowers the counts in testdata/words.txt
	$(GO) test -count=1 -run 'TestPrivateWords$$' -v . -update-words

.PHONY: tools
tools: ## installs what `make test` runs when root on Debian, names it elsewhere
	@.ci/tools

.PHONY: test
test: tools ## check, and the exact tests with the real kernel and real programs; installs what it needs
	@GO="$(GO)" .ci/test exact

.PHONY: test-all
test-all: test ## test, and what needs Wine, Chromium, PostgreSQL, Prometheus, PyPI and npm; the attack corpus
	@.ci/tools all
	cd bench && $(GO) test -timeout 5m ./...
	@GO="$(GO)" .ci/test rest

.PHONY: flaky
flaky: ## each test that waits 50 times beside four busy loops; COUNT=5 for a look
	@GO="$(GO)" .ci/flaky

.PHONY: live
live: build ## verdicts, gains and the lab's fidelity on live TCP; needs a quiet machine (20 minutes)
	cd bench && FULLPIPE_BANK=1 FULLPIPE_PROGRAM=$(CURDIR)/$(BIN) $(GO) test -count=1 -timeout 1h -parallel 4 -v ./live
	FULLPIPE_BANK=1 $(GO) test -count=1 -timeout 10m -run TestRecheck_ReportsHalvedLink -v ./internal/cli

.PHONY: bank
bank: build ## measures the figures of docs/benchmarks.md on this machine (long); RUN=TestBankLab for a part
	@.ci/tools tshark rsync smbclient samba
	cd bench && FULLPIPE_BANK=1 FULLPIPE_BANK_OUT=$(CURDIR)/bench/benchmarks.jsonl FULLPIPE_PROGRAM=$(CURDIR)/$(BIN) \
		$(GO) test -count=1 -timeout 12h -parallel 4 -run '$(or $(RUN),TestBank)' -v .
	$(GO) run -C bench ./bankdoc < bench/benchmarks.jsonl > docs/benchmarks.md

.PHONY: fuzz
fuzz: ## fuzzes every target for TIME each (2m); `make bank RUN=TestBankHostile/fuzz` goes on with a longer campaign
	.ci/fuzz $(or $(TIME),2m)

.PHONY: experiments
experiments: build ## the founding documents' experiments in the lab, beside their figures, into docs/experiments.md (20 minutes)
	$(GO) run -C bench ./experiments -program $(CURDIR)/$(BIN) -o $(CURDIR)/docs/experiments.md

.PHONY: docs
docs: ## checks links, names and flags in README and docs, and runs their examples
	$(GO) test -count=1 ./docs

.PHONY: pictures
pictures: build ## docs/session.svg, a session in the lab; docs/limiters/*.svg, each limiter; ONLY=session
	@GO="$(GO)" .ci/pictures $(BIN) $(ONLY)

.PHONY: uplot
uplot: ## compares the chart of `fullpipe ui`'s pages with what npm has
	dir=$$(mktemp -d) && cd $$dir && npm pack --silent uplot@1.6.32 && tar xzf uplot-1.6.32.tgz && \
		for file in LICENSE dist/uPlot.esm.js dist/uPlot.min.css; do \
			cmp package/$$file $(CURDIR)/internal/web/static/uplot/$${file##*/} || exit 1; done; rm -r $$dir

.PHONY: release
release: ## packages, archives, image, manifests and their bill of materials in dist/, without the network
	cd release && $(GO) run .

PREFIX = /usr/local

.PHONY: install
install: build ## the program, its manual pages, completions, units, dashboards and alerts below $(DESTDIR)$(PREFIX)
	install -Dm755 $(BIN) $(DESTDIR)$(PREFIX)/bin/fullpipe
	$(GO) run -tags manual ./cmd/fullpipe bin/manual $$(git log -1 --format=%cs) docs/exit-status.md
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	install -m644 $$(ls bin/manual/man1/* | grep -v fullpipe-hub) $(DESTDIR)$(PREFIX)/share/man/man1
	install -Dm644 bin/manual/bash/fullpipe $(DESTDIR)$(PREFIX)/share/bash-completion/completions/fullpipe
	install -Dm644 bin/manual/zsh/_fullpipe $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_fullpipe
	install -Dm644 bin/manual/fish/fullpipe.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/fullpipe.fish
	install -Dm644 -t $(DESTDIR)$(PREFIX)/lib/systemd/system contrib/fullpipe.service contrib/fullpipe-watch.service \
		contrib/fullpipe-recheck.service contrib/fullpipe-recheck-once.service contrib/fullpipe-recheck-once.timer \
		contrib/fullpipe-agent.service
	for file in $$(cd contrib && ls */grafana.json */alerts.yml); do \
		install -Dm644 contrib/$$file $(DESTDIR)$(PREFIX)/share/fullpipe/$$file || exit 1; done

.PHONY: clean
clean:
	rm -rf bin dist

.PHONY: help
help:
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

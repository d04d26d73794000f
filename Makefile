# `make help` lists what there is; its text comes from the ## comments.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS   += --no-print-directory --no-builtin-rules
.DEFAULT_GOAL := help

GO      ?= go
NPM     ?= npm
PREFIX  ?= /usr/local
DESTDIR ?=
# What `make install` and `make package` take.
BIN     ?= bin/ptyd
ADDR    ?= 127.0.0.1:7373
# Where `make run` keeps its state; the daemon's own default when empty.
STATE   ?=

VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
VERSION_VAR := github.com/ptyd/ptyd/internal/config.Version
# Pinned: another version finds other things, and a build must repeat.
NFPM        := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# The program between fork and exec, which the binary carries within it. Without
# a compiler the binary is its own stage: right, and slower.
STAGE       := internal/ptymgr/stage/bin/stage
STAGE_FLAGS := -Os -static -nostdlib -fno-pie -no-pie -fno-stack-protector -fno-asynchronous-unwind-tables \
               -Wl,-z,noexecstack -Wl,--build-id=none -s

STEP  := scripts/step
STAMP := .cache
PAGE  := web/dist/index.html
# npm writes this file when it has installed everything.
NPM_DONE := web/node_modules/.package-lock.json
# Static: it runs on any Linux, in a container from scratch too. No symbols:
# stack traces keep their names, and the file is a quarter smaller.
BUILD := CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X $(VERSION_VAR)=$(VERSION)'
# Two packages at a time: more on a small machine turns the tests that measure
# time into a lottery. 15 minutes is far beyond what the slowest package takes.
GOTEST := $(GO) test -race -p 2 -timeout 15m
# All packages but the end-to-end tests, which have a step of their own.
UNIT = $$($(GO) list ./... | grep -v '/e2e$$')

BUILD_NEEDS := node:nodejs npm:npm
TEST_NEEDS  := /lib/systemd/systemd:systemd nsenter:util-linux gcc:gcc /usr/include/stdio.h:libc6-dev vim:vim htop:htop jq:jq \
               chromium:chromium /usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf:fonts-dejavu-core

.PHONY: help
help: ## this text
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

##### Using it

.PHONY: run
run: build ## install what is needed, build, start the daemon and print a link that logs the browser in
	@exec bin/ptyd serve --print-link --listen $(ADDR) $(if $(STATE),--state-dir $(STATE))

.PHONY: build
build: page ## build the page and the static binary bin/ptyd
	@$(STEP) 'build bin/ptyd' $(MAKE) binary

.PHONY: binary
binary: $(STAGE) # the binary alone, with whatever page is built
	@$(BUILD) -o bin/ptyd ./cmd/ptyd

# Where it cannot be built, what an earlier build left is removed: a stale one
# would be worse than none.
$(STAGE): internal/ptymgr/stage/src/stage.c
	@if command -v gcc >/dev/null; then \
	  gcc $(STAGE_FLAGS) -o $@.new $< && mv $@.new $@; \
	else \
	  rm -f $@; echo "no gcc: sessions start through the binary itself, a few milliseconds slower"; \
	fi

.PHONY: page
page: build-deps $(PAGE) # the page alone

.PHONY: build-deps
build-deps:
	@scripts/packages $(BUILD_NEEDS)

.PHONY: test-deps
test-deps:
	@scripts/packages $(BUILD_NEEDS) $(TEST_NEEDS)

# npm ci removes node_modules first, so it runs only when the lock changed.
$(NPM_DONE): web/package.json web/package-lock.json
	@$(STEP) 'install the page'\''s packages' $(NPM) --prefix web ci --no-audit --no-fund
	@touch $@

WEB_SOURCES := $(shell find web -path web/node_modules -prune -o -path web/dist -prune -o -path web/test -prune -o -type f ! -name '*.go' ! -name '*.md' -print 2>/dev/null)
$(PAGE): $(NPM_DONE) $(WEB_SOURCES)
	@$(STEP) 'build the page' $(NPM) --prefix web run --silent build
	@touch $@

##### Looking after it

.PHONY: test
test: test-deps page $(STAGE) ## install what is needed and run all tests, the browser's too
	@$(STEP) 'tests of the page' $(NPM) --prefix web run --silent test
	@$(STEP) 'tests of the packages' bash -c '$(GOTEST) $(UNIT)'
	@$(STEP) 'tests of the failpoints' $(GOTEST) -tags ptydtest ./internal/failpoint
	@$(STEP) 'end-to-end tests' $(GOTEST) -count 1 -parallel 4 ./e2e
	@$(STEP) 'browser tests' $(MAKE) browser
	@echo; echo "All tests passed."

# The daemon of the browser's tests is the -race build that the end-to-end
# tests made; alone, this target makes it.
.PHONY: browser
browser: test-deps page $(STAGE) # the browser's tests alone
	@CGO_ENABLED=1 $(GO) build -race -tags ptydtest -ldflags '-X $(VERSION_VAR)=e2e' -o $(STAMP)/e2e/ptyd-test ./cmd/ptyd
	@mkdir -p out/screenshots
	@node --test --test-concurrency=1 --test-timeout=300000 --test-reporter=spec e2e/browser/*.test.mjs

.PHONY: screenshot
screenshot: test-deps page $(STAGE) # docs/screenshot.png anew
	@CGO_ENABLED=1 $(GO) build -race -tags ptydtest -ldflags '-X $(VERSION_VAR)=e2e' -o $(STAMP)/e2e/ptyd-test ./cmd/ptyd
	@node e2e/browser/screenshot.mjs

.PHONY: e2e
e2e: test-deps page $(STAGE) # the end-to-end tests alone; RUN=Name picks some
	@$(GOTEST) -count 1 -parallel 4 -v $(if $(RUN),-run '$(RUN)') ./e2e

.PHONY: torture
torture: test-deps page $(STAGE) ## the end-to-end tests and the comparison with xterm.js with the full numbers; takes long
	@$(STEP) 'torture of the emulator' env PTYD_TORTURE=1 $(GO) test -race -count 1 -timeout 90m -v ./internal/vt/oracle
	@$(STEP) 'torture' env PTYD_TORTURE=1 $(GO) test -race -count 1 -parallel 2 -timeout 90m -v ./e2e

.PHONY: check
check: test-deps $(NPM_DONE) $(STAGE) ## formatting, go vet, staticcheck, import rules, the page's types
	@$(STEP) 'gofmt' bash -c 'bad=$$(gofmt -l $$(git ls-files "*.go")); [ -z "$$bad" ] || { echo "run make fmt:" $$bad; exit 1; }'
	@$(STEP) 'go vet' $(GO) vet ./...
	@$(STEP) 'go vet, test build' $(GO) vet -tags ptydtest ./...
	@$(STEP) 'staticcheck' $(GO) run $(STATICCHECK) ./...
	@$(STEP) 'import rules' $(GO) test -count 1 ./internal/layers
	@$(STEP) 'types of the page' $(NPM) --prefix web run --silent check

.PHONY: bench
bench: build-deps $(STAGE) ## measure ptyd beside a bare PTY and WebSocket server; prints a table, writes out/bench.json
	@mkdir -p out bin
	@$(BUILD) -o bin/ ./cmd/ptyd ./cmd/ptyd-bench
	@bin/ptyd-bench -ptyd bin/ptyd -o out/bench.json $(BENCH)

.PHONY: cover
cover: page $(STAGE) ## coverage of the packages' tests, as out/cover.html
	@mkdir -p out
	@$(GO) test -p 2 -timeout 10m -coverprofile out/cover.out $(UNIT)
	@$(GO) tool cover -html out/cover.out -o out/cover.html
	@$(GO) tool cover -func out/cover.out | tail -n 1

.PHONY: fmt
fmt: ## format the Go files
	@gofmt -w $$(git ls-files '*.go')

##### Installing it

.PHONY: install
install: ## install binary, completions, manual pages and systemd units (PREFIX, DESTDIR)
	@[ -x $(BIN) ] || { echo 'run `make build` first'; exit 1; }
	@install -D -m 0755 $(BIN) $(DESTDIR)$(PREFIX)/bin/ptyd
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	  $(BIN) completion bash > $$tmp/ptyd; $(BIN) completion zsh > $$tmp/_ptyd; $(BIN) completion fish > $$tmp/ptyd.fish; \
	  install -D -m 0644 $$tmp/ptyd $(DESTDIR)$(PREFIX)/share/bash-completion/completions/ptyd; \
	  install -D -m 0644 $$tmp/_ptyd $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_ptyd; \
	  install -D -m 0644 $$tmp/ptyd.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/ptyd.fish; \
	  $(BIN) gen-docs $$tmp/docs; \
	  for page in $$tmp/docs/man/man1/*.1; do install -D -m 0644 $$page $(DESTDIR)$(PREFIX)/share/man/man1/$$(basename $$page); done; \
	  for unit in system/ptyd.service system/ptyd-tmp.service user/ptyd.service; do \
	    sed 's|/usr/local/bin/ptyd|$(PREFIX)/bin/ptyd|g' systemd/$$unit > $$tmp/unit; \
	    install -D -m 0644 $$tmp/unit $(DESTDIR)$(PREFIX)/lib/systemd/$$unit; \
	  done
	@echo "Installed below $(DESTDIR)$(PREFIX). As a service: sudo $(PREFIX)/bin/ptyd service install; for yourself alone: $(PREFIX)/bin/ptyd service install --user."

# The version of the package: Debian's begin with a digit.
DEB_VERSION ?= $(shell echo '$(VERSION)' | sed -E 's/^v//; s/-/+/g; /^[0-9]+\./!s/^/0~/')

.PHONY: deb
deb: build ## build a Debian package in out/
	@$(MAKE) package

.PHONY: package
package: # the Debian package of the program that is there (BIN)
	@rm -rf out/deb && mkdir -p out/deb/root/usr/share/doc/ptyd
	@$(MAKE) install DESTDIR=out/deb/root PREFIX=/usr >/dev/null
	@mv out/deb/root/usr/share/zsh/site-functions out/deb/root/usr/share/zsh/vendor-completions
	@find out/deb/root/usr/share/man -name '*.1' -exec gzip -9n {} +
	@cp docs/*.md README.md out/deb/root/usr/share/doc/ptyd/
	@gzip -9nc CHANGELOG.md > out/deb/root/usr/share/doc/ptyd/changelog.gz
	@cp LICENSE out/deb/root/usr/share/doc/ptyd/copyright
	@chmod -R u=rwX,go=rX out/deb/root
	@DEB_VERSION='$(DEB_VERSION)' DEB_ARCH=$$($(GO) env GOARCH) $(GO) run $(NFPM) package --config scripts/deb/nfpm.yaml --packager deb --target out/

.PHONY: clean
clean: ## remove what was built; the state of daemons stays
	@rm -rf bin out $(STAMP) $(STAGE) web/node_modules web/test-results
	@find web/dist -mindepth 1 ! -name .gitkeep -delete 2>/dev/null || true

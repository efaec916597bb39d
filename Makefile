# The two commands: `make demo` and `make test`. Everything they need is installed by `make setup`, once.

SHELL := /bin/bash
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
MVN := mvn -q -B -ntp
STAMPS := .lowtide/setup
# Maven adds to these folders, and takes nothing out: a jar or a class of the build before would lie on the class path beside its successor.
stale = $(1)/lib $(1)/classes
# How many processes share the files of tests that boot a store; each has a store of its own, some 3 GB of memory.
JOBS ?= 2
# The lines of Spark that tests can be run on, each in an environment of its own. Those that are supported: lowtide/run/sparks.py.
SPARK_LINES := 3.5 4.0 4.1 4.2 4.3
# The older lines of HBase that tests can be run on beside the newest: lowtide/run/hbases.py.
HBASE_LINES := 2.5

.PHONY: help setup phoenix secured secured-test prometheus hbase-2.5 check-tools demo test whole prove java-test unit store-test airflow-test lint break-rules judge wheel release docs bench soak chaos \
	screenshots compose-test yarn cluster-test lock clean matrix $(SPARK_LINES:%=spark-%)

help:
	@echo "make demo    set up, boot a store, crash clients in it, clean it through Airflow, report"
	@echo "make test    set up, lint, run the tests; of those that boot a store a sixth, another for each commit"
	@echo "make whole   the same with all of them: an hour, on a slow machine two"
	@echo "make prove   what make whole leaves out for time: all seeds, all cuts, every broken rule; some hours"
	@echo "make setup   the set-up alone: $(BIN)/lowtide, the connector, the embedded store"
	@echo "make phoenix Apache Phoenix's jars, for $(BIN)/lowtide stack up --phoenix"
	@echo "make secured a key distribution centre and gssapi, for $(BIN)/lowtide stack up --secured"
	@echo "make secured-test   a store that asks for logins, and every kind of gateway; needs a C compiler and Kerberos's headers"
	@echo "make hbase-2.5   the embedded store's jars with HBase 2.5, for $(BIN)/lowtide stack up --hbase 2.5"
	@echo "make compose-test   build docker-compose.yaml's images, start it, run a DAG in it, take it down (KEEP=1 leaves it up)"
	@echo "make prometheus   Prometheus, for the tests of the folder monitoring/; on Debian"
	@echo "make yarn    the servers of YARN and HDFS, for make cluster-test"
	@echo "make cluster-test   the jobs on YARN and HDFS, on this machine's loopback: executors killed, Airflow, HBase snapshots, Kerberos"
	@echo "make .env    the secrets that docker-compose.yaml asks for, random"
	@echo "make bench   the speed ratios (20 million cells, a million transactions; takes a while)"
	@echo "make chaos   clients, runs that die and tables that change, in an order that a seed gives: SECONDS=600 SEED= KEEP= SERVERS= TWICE= NEMESES= RUNS= PARKS= MODE="
	@echo "make soak    an hour of processes that are killed, stopped and overtaken, then one of the ledger's clients being killed"
	@echo "make break-rules   break each safety rule in a copy of the code, and see the right assertion fail"
	@echo "make judge   break those by which data come out wrong, and see whether lowtide verify, alone, notices"
	@echo "make matrix  tests of the jobs on every line of Spark and HBase, and a table; hours. Some: SPARK_LINES=\"3.5 4.1\" HBASE_LINES="
	@echo "make wheel   wheels to install elsewhere, in dist/: Lowtide's, and the lab's by itself"
	@echo "make release what goes out with a version, in dist/VERSION: wheels, connector, versions that were tried, checksums"
	@echo "make docs    these pages as a site, in .lowtide/site; fails on any warning"
	@echo "make screenshots   the pictures of the docs, taken from a demo that is up; needs Chromium or Chrome"
	@echo "make lock    resolve requirements.txt and requirements-docs.txt into their .lock again"
	@echo "make clean   remove what was built and the demo's data"

setup: check-tools $(STAMPS)/python $(STAMPS)/connector $(STAMPS)/embedded

check-tools:
	@PYTHON="$(PYTHON)" bash tools/check-tools

$(STAMPS)/python: requirements.lock pyproject.toml setup.py
	@mkdir -p $(STAMPS)
	@echo "setup: Python packages into $(VENV) (a minute the first time)"
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV) # one that broke off has a python and no pip
	@$(BIN)/python -m pip install -q --disable-pip-version-check uv==0.13.8
	@$(BIN)/uv pip install -q --python $(BIN)/python -r requirements.lock
	@rm -rf lowtide.egg-info # of builds before setup.py put it elsewhere; on the path it is a second installation
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps -e .
	@touch $@

$(STAMPS)/connector: $(shell find connector -path '*/target' -prune -o -type f -print 2>/dev/null)
	@mkdir -p $(STAMPS)
	@echo "setup: the Spark connector (Maven; a minute or two the first time)"
	@rm -rf $(call stale,connector/target)
	@$(MVN) -f connector/pom.xml -DskipTests package
	@touch $@

$(STAMPS)/embedded: $(shell find embedded \( -path '*/target' -o -path embedded/phoenix -o -path embedded/hadoop -o -path embedded/secured \) -prune -o -type f -print 2>/dev/null)
	@mkdir -p $(STAMPS)
	@echo "setup: the embedded store (Maven; a minute or two the first time)"
	@rm -rf $(call stale,embedded/target)
	@$(MVN) -f embedded/pom.xml -DskipTests package
	@touch $@

# Jars alone, for `lowtide stack up --phoenix` and the tests of it.
phoenix: $(STAMPS)/phoenix

$(STAMPS)/phoenix: embedded/phoenix/pom.xml
	@mkdir -p $(STAMPS)
	@echo "setup: Apache Phoenix for the embedded store (Maven; a minute the first time)"
	@rm -rf $(call stale,embedded/phoenix/target)
	@$(MVN) -f embedded/phoenix/pom.xml package
	@touch $@

# The key distribution centre of a secured store, and what Python needs to log in: for `lowtide stack up --secured` and tests/secured.
secured: $(STAMPS)/secured $(STAMPS)/gssapi

$(STAMPS)/secured: $(shell find embedded/secured -path '*/target' -prune -o -type f -print 2>/dev/null)
	@mkdir -p $(STAMPS)
	@echo "setup: the key distribution centre of a secured store (Maven; half a minute the first time)"
	@rm -rf $(call stale,embedded/secured/target)
	@$(MVN) -f embedded/secured/pom.xml package
	@touch $@

$(STAMPS)/gssapi: pyproject.toml | $(STAMPS)/python
	@tools/check-kerberos
	@echo "setup: gssapi into $(VENV) (compiles; a minute or two the first time)"
	@$(BIN)/uv pip install -q --python $(BIN)/python --editable '.[kerberos]'
	@touch $@

# Jars alone, for the laboratory's cluster (lowtide/lab/cluster).
yarn: $(STAMPS)/yarn

$(STAMPS)/yarn: embedded/hadoop/pom.xml
	@mkdir -p $(STAMPS)
	@echo "setup: the servers of YARN and HDFS (Maven; half a minute the first time)"
	@rm -rf $(call stale,embedded/hadoop/target)
	@$(MVN) -f embedded/hadoop/pom.xml package
	@touch $@

# Of Debian, for the tests of monitoring/; other machines bring their own.
prometheus:
	@tools/get-prometheus

# A line of Spark with what tests need: the newest of it, and all else as locked. No Airflow: its provider wants one Spark beside it.
$(SPARK_LINES:%=spark-%): spark-%: $(STAMPS)/spark-%

$(SPARK_LINES:%=$(STAMPS)/spark-%): $(STAMPS)/spark-%: requirements.lock pyproject.toml setup.py | $(STAMPS)/python
	@echo "setup: Spark $* into .lowtide/spark-$* (a minute or two the first time)"
	@test -x .lowtide/spark-$*/bin/pip || $(PYTHON) -m venv --clear .lowtide/spark-$*
	@grep -v '^pyspark' requirements.lock > .lowtide/spark-$*/constraints.txt
	@$(BIN)/uv pip install -q --python .lowtide/spark-$*/bin/python -c .lowtide/spark-$*/constraints.txt \
		'pyspark==$*.*' pyarrow pytest pytest-timeout hypothesis --editable '.[lab]'
	@touch $@

# The embedded store's jars once more, with an older line of HBase, for `lowtide stack up --hbase 2.5` and the tests of it.
hbase-2.5: $(STAMPS)/hbase-2.5

$(STAMPS)/hbase-2.5: $(STAMPS)/embedded
	@echo "setup: the embedded store with HBase 2.5 (Maven; a minute or two the first time)"
	@rm -rf $(call stale,embedded/target/hbase-2.5)
	@$(MVN) -f embedded/pom.xml -P hbase-2.5 -DskipTests package
	@touch $@

demo: setup
	@$(BIN)/lowtide demo

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

# Every phase, its log and results in .lowtide/suite (tools/suite). The targets below run one phase alone.
SUITE := PYTHONPATH=tools $(BIN)/python -m suite --jobs $(JOBS)

test: setup phoenix spark-3.5
	@$(SUITE)

# Every test of a store, where make test takes this run's part of them.
whole: setup phoenix spark-3.5
	@$(SUITE) --whole

# What make whole leaves out for time: every seed, every cut of a killed run, five minutes of the ledger, a week's backfill, every
# broken rule.
prove: setup phoenix spark-3.5
	@LOWTIDE_PROVE=1 $(SUITE)

# By hand: tests on every line of Spark, and on the newest with the older lines of HBase.
matrix: setup $(SPARK_LINES:%=spark-%) $(HBASE_LINES:%=hbase-%)
	@$(BIN)/python tools/matrix $(SPARK_LINES) $(if $(HBASE_LINES),--hbase $(HBASE_LINES)) --jobs $(JOBS)

java-test: setup
	@$(SUITE) --only java

unit: setup
	@$(SUITE) --only unit spark

store-test: setup phoenix
	@$(SUITE) --whole --only store own-driver

airflow-test: setup phoenix
	@$(SUITE) --whole --only airflow

# Breaks each safety rule in a copy of the code and sees the right assertion fail.
break-rules: setup
	@$(BIN)/python tools/break-rules --jobs $(JOBS)

judge: setup
	@$(BIN)/python tools/break-rules --judge --jobs $(JOBS)

# A wheel with the connector, the DAG files and the Spark programs in it; and the lab's, which no production needs.
wheel: setup
	@$(BIN)/uv build -q --wheel -o dist
	@rm -rf .lowtide/build/lab # of a build before this one, perhaps with modules that are no longer there
	@$(BIN)/uv build -q --wheel -o dist lowtide/lab
	@ls dist/*.whl

# Of the commit that is checked out: wheels, the connector for YARN, what was tried, checksums (tools/release.py).
release: setup
	@$(BIN)/python tools/release.py

# The site's builder has an environment of its own, so that the set-up for tests does not grow. The variable silences a notice
# about the builder's own future, which is no warning about these pages.
docs: $(STAMPS)/docs
	@NO_MKDOCS_2_WARNING=1 .lowtide/docs/bin/mkdocs build --strict
	@.lowtide/docs/bin/python tools/check-site .lowtide/site

$(STAMPS)/docs: requirements-docs.lock
	@mkdir -p $(STAMPS)
	@echo "docs: the site's builder into .lowtide/docs (half a minute the first time)"
	@test -x .lowtide/docs/bin/pip || $(PYTHON) -m venv --clear .lowtide/docs
	@.lowtide/docs/bin/python -m pip install -q --disable-pip-version-check -r requirements-docs.lock
	@touch $@

bench: setup
	@$(BIN)/python -m bench
	@$(BIN)/python -m bench.history
	@$(BIN)/python -m bench.ledger
	@$(BIN)/python -m bench.price
	@$(BIN)/python -m bench.fixed
	@$(BIN)/python -m bench.foreground

# By hand: what runs at the same time, for long. The ledger's part has tables, clients and a judge of its own.
soak: setup
	@$(MAKE) --no-print-directory chaos MODE=free SECONDS=3600 SERVERS=3
	@LOWTIDE_LEDGER_SECONDS=3600 $(BIN)/python -m pytest -o timeout=5400 tests/store/test_ledger_concurrency.py -s -p no:cacheprovider

# Seed after seed, judged (tests/chaos); what fails is cut down. Its store is its own. MODE=free: processes that run at the same
# time; MODE=zombies: runs that stand still, and go on when others have been there.
chaos: setup
	@PYTHONPATH=.:tests/store:tools $(BIN)/python -m tests.chaos $(if $(MODE),--mode $(MODE)) $(if $(SECONDS),--seconds $(SECONDS)) \
		$(if $(SEED),--seed $(SEED)) $(if $(KEEP),--keep $(KEEP)) $(if $(SERVERS),--servers $(SERVERS)) $(if $(TWICE),--twice $(TWICE)) \
		$(if $(NEMESES),--nemeses $(NEMESES)) $(if $(RUNS),--jobs $(RUNS)) $(if $(COUNT),--count $(COUNT)) $(if $(PARKS),--parks $(PARKS)) \
		$(if $(PHOENIX),--phoenix)

# The pictures of docs/images, from the demo that is up.
screenshots: setup
	@$(BIN)/python tools/screenshots

# The jobs on YARN and HDFS, as docs/clusters.md says, without logins and with; some 12 GB of memory. What it does and when, it prints. What ran is then
# recorded by: tools/versions.py record "make cluster-test" --results .lowtide/cluster-test
cluster-test: setup yarn secured
	@$(BIN)/python -m pytest -s --junitxml=.lowtide/cluster-test/results.xml tests/cluster

# A store that asks for logins, with each kind of gateway in turn.
secured-test: setup secured
	@$(BIN)/python -m pytest --junitxml=.lowtide/secured-test/results.xml tests/secured

# Needs a Docker engine with Compose, and of the set-up the Python packages alone: Java and Maven are in the images.
compose-test: $(STAMPS)/python .env
	@$(BIN)/python -m pytest -x -s tests/compose $(if $(KEEP),--keep)

.env:
	@tools/make-env

lock:
	@$(BIN)/uv pip compile requirements.txt -o requirements.lock -q --no-header
	@$(BIN)/uv pip compile requirements-docs.txt -o requirements-docs.lock -q --no-header

clean:
	@test ! -x $(BIN)/lowtide || $(BIN)/lowtide stack down || true
	@rm -rf .lowtide connector/target embedded/target embedded/phoenix/target embedded/hadoop/target embedded/secured/target

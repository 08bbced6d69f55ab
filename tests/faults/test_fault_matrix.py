"""The faults that this project withstands, and the tests that cause each of them."""

import re

from support.names_of_tests import names_of_tests

FAULTS = """
1 kill -9 during ingest
  faults/test_killed_writes.py::test_a_kill_loses_nothing_acknowledged
  faults/test_killed_ingest.py::test_kill_of_a_real_process_with_workers
2 kill -9 during a migration
  faults/test_killed_writes.py::test_a_kill_loses_nothing_acknowledged
3 kill -9 during purge
  faults/test_killed_writes.py::test_a_kill_loses_nothing_acknowledged
4 power loss
  faults/test_power_loss.py::test_a_power_loss_loses_nothing_acknowledged
5 the n-th write fails with FULL
  faults/test_failing_disk.py::test_the_nth_write_finds_the_disk_full
  faults/test_full_disk_commands.py::test_commands_with_0_bytes_free
6 page or quota limit
  faults/test_failing_disk.py::test_a_quota
7 fsync fails
  faults/test_failing_disk.py::test_the_nth_sync_fails
  faults/test_failing_disk.py::test_an_audit_on_a_disk_that_fails
8 two writers
  faults/test_many_processes.py::test_a_second_writer_waits_while_it_may
  faults/test_many_processes.py::test_a_second_writer_gives_up_after_the_timeout
9 readers during a write
  faults/test_many_processes.py::test_readers_see_whole_states_while_a_writer_writes
10 a stuck reader
  storage/test_purge.py::test_a_reader_makes_it_pending_and_finish_completes_it
  interfaces/cli/test_purge.py::test_a_reader_makes_it_pending
11 truncated, zeroed or random file
  faults/test_damaged_file.py::test_hopeless_files_are_refused_and_left_alone
  faults/test_damaged_file.py::test_a_file_shorter_than_its_header_says
12 flipped bits
  faults/test_flipped_bits.py::test_no_flip_that_changed_a_row_goes_unnoticed
  faults/test_damaged_content.py::test_a_flipped_bit_in_a_vector_is_found_and_mended
13 FTS drift
  faults/test_damaged_content.py::test_drift_is_found_and_mended
14 another application's SQLite file
  faults/test_damaged_file.py::test_another_applications_file
15 newer schema
  faults/test_damaged_file.py::test_a_newer_schema
16 older schema
  faults/test_migration.py::test_an_older_corpus_is_backed_up_then_migrated
  faults/test_migration.py::test_a_corpus_of_each_release_is_migrated
17 hostile trigger or view in the file
  faults/test_damaged_file.py::test_a_hostile_schema_is_blocked
  faults/test_damaged_file.py::test_hardening_holds_beneath_the_check
18 read-only file or folder
  faults/test_read_only_file.py::test_a_read_only_file
  faults/test_read_only_file.py::test_a_read_only_folder
19 backup under write
  faults/test_many_processes.py::test_a_backup_under_write_is_a_committed_state
  faults/test_killed_writes.py::test_a_kill_loses_nothing_acknowledged
20 model or dimension changed
  faults/test_other_model.py::test_another_model_writes_nothing_and_answers_lexically
  laws/test_law_5_one_index_one_model.py::test_an_index_of_another_model_is_never_used
21 embedder down
  embedding/test_servers.py::test_a_server_that_is_down_is_reported
  ingest/test_indexes.py::test_the_server_down_during_ingest
22 embedder slow, or drip-feeding
  embedding/test_servers.py::test_the_deadline_covers_the_whole_answer
23 HTML, 500, endless body
  embedding/test_servers.py::test_a_faulty_answer_is_refused
  embedding/test_servers.py::test_status_500_is_reported_with_the_servers_words
24 short batch, NaN, zeros, wrong dimension
  embedding/test_servers.py::test_a_faulty_answer_is_refused
  faults/test_other_model.py::test_a_bad_batch_is_refused_and_its_chunks_wait
25 input over the model's context
  embedding/test_servers.py::test_a_text_over_the_context_is_refused
  embedding/test_models.py::test_every_character_is_read_in_its_order_and_no_window_is_too_long
26 embedder URL off loopback, or a redirect to elsewhere
  embedding/test_servers.py::test_another_host_is_refused_without_a_lookup
  embedding/test_servers.py::test_a_redirect_is_not_followed
27 overlay malformed: YAML tags, alias bomb, duplicate or unknown keys
  faults/test_abused_declarations.py::test_a_malformed_overlay_never_retrieves
  ingest/test_metadata.py::test_an_alias_bomb_does_not_expand
  ingest/test_metadata.py::test_what_may_hide_a_governing_key_refuses_the_document
28 a pattern that would run away
  faults/test_abused_declarations.py::test_no_glob_runs_away
  policy/test_access.py::test_no_pattern_takes_exponential_time
  scan/test_instructions.py::test_long_text_takes_linear_time
29 unknown agent, empty policy
  test_access_control.py::test_every_agent_without_a_rule_gets_the_same_refusal
  policy/test_access.py::test_a_policy_without_agents_denies_everyone
30 denied against missing
  test_access_control.py::test_a_hidden_document_gives_the_same_error_as_a_missing_one
  interfaces/test_agents.py::test_the_command_line_says_the_same
31 hidden documents
  laws/test_law_9_non_interference.py::TestNonInterference
32 hidden vectors nearer than visible ones
  laws/test_law_9_fixed_corpora.py::test_hidden_neighbours_take_no_place
33 audit read by an agent
  policy/test_audit.py::test_an_agent_reads_its_own_rows_and_cannot_count_the_others
  policy/test_audit.py::test_an_entry_has_counts_and_digests_and_no_text
34 FTS operators in a task
  interfaces/cli/test_task_texts.py::test_a_task_is_text
  laws/test_law_4_no_text_is_syntax.py::test_no_vocabulary_or_pattern_is_syntax
35 NUL, lone surrogate
  interfaces/cli/test_task_texts.py::test_a_task_is_text
  laws/test_law_4_no_text_is_syntax.py::test_any_task_gives_a_bundle_or_a_coded_error
36 JSON: deep nesting, NaN, 1e999, 5,000-digit integers, duplicate keys, BOM
  interfaces/servers/test_serve_bad_input.py::test_json_faults
  interfaces/test_json_lines.py::test_any_bytes_are_a_value_or_a_coded_error
37 a line over 1 MiB, or one that never ends
  interfaces/servers/test_serve_bad_input.py::test_the_longest_line_and_one_byte_more
  interfaces/servers/test_serve_bad_input.py::test_a_line_that_never_ends_takes_no_memory
38 invalid UTF-8
  interfaces/servers/test_serve_bad_input.py::test_json_faults
39 end of input, half a line, broken pipe, SIGTERM
  interfaces/servers/test_serve_end.py::test_the_end_of_input_does_not_wait_for_ever
  interfaces/servers/test_serve_end.py::test_half_a_line_before_the_end
  interfaces/servers/test_mcp_process.py::test_a_signal_ends_a_call_that_runs
  interfaces/servers/test_serve_end.py::test_a_broken_pipe_ends_it
  interfaces/servers/test_serve_end.py::test_a_signal_ends_it
40 something prints to stdout
  interfaces/servers/test_serve_end.py::test_what_prints_lands_on_standard_error
  interfaces/servers/test_mcp_process.py::test_stray_prints_do_not_reach_the_client
41 cancel, runaway query
  interfaces/servers/test_serve.py::test_a_cancelled_request_that_runs_is_interrupted
  interfaces/servers/test_serve.py::test_an_overdue_deadline
42 ../, symlink out of the root, loop, FIFO, device
  faults/test_files_that_change.py::test_what_is_no_regular_file_below_the_root
  faults/test_files_that_change.py::test_a_device_named_on_the_command_line
43 file changes while it is read
  faults/test_files_that_change.py::test_swapped_between_finding_and_reading
44 100 MB, binary, archive bomb
  faults/test_files_that_change.py::test_heavy_files_are_skipped_and_the_rest_goes_on
45 tag characters, variation selectors, bidi, fillers, homoglyphs, HTML comments
  scan/test_scan.py::test_every_attack_is_found_at_its_place_with_its_kind
  ingest/test_hidden.py::test_hidden_facts_are_not_shown_or_are_labelled
46 emoji joiners, Persian, Hebrew, Hindi
  scan/test_scan.py::test_legitimate_characters_have_no_findings
  scan/test_scan.py::test_ordinary_documents_have_no_findings
47 purge
  storage/test_purge.py::test_no_byte_of_a_canary_is_left
  faults/test_killed_writes.py::test_a_kill_loses_nothing_acknowledged
"""
"""A line with the number of a fault, then its tests, by file and name below ``tests/``."""


def test_each_fault_has_tests_that_exist() -> None:
    faults = re.findall(r"^(\d+) .+\n((?:  .+\n)+)", FAULTS, re.MULTILINE)
    assert [int(number) for number, _ in faults] == list(range(1, 48))
    for number, tests in faults:
        for test in tests.split():
            file, name = test.split("::", 1)
            assert name in names_of_tests(f"tests/{file}"), (number, test)

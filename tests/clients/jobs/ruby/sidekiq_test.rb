# frozen_string_literal: true

# Sidekiq against a running server, aimed by HOLDFAST_TEST_ADDR=host:port: a thousand jobs while worker processes are killed,
# and the parts of its API. Knows nothing about which server answers. The tests empty it.

ENV["REDIS_URL"] = "redis://#{ENV.fetch("HOLDFAST_TEST_ADDR")}/0"

require "minitest/autorun"
require "sidekiq/api"
require "tempfile"
require "timeout"
require_relative "jobs"

Sidekiq.logger.level = Logger::WARN

class SidekiqTest < Minitest::Test
  CONCURRENCY = 10
  SECONDS_MAX = 60

  def setup
    @processes = []
    @log = Tempfile.new("sidekiq-log")
    redis(&:flushall)
  end

  def teardown
    @processes.dup.each { |pid| stop(pid, :KILL) }
    puts "The end of the log of #{name}:", File.readlines(@log.path).last(40) unless passed?
    @log.close!
  end

  # A test that waits in vain fails.
  def run
    Timeout.timeout(SECONDS_MAX) { super }
  end

  def redis(&block)
    Sidekiq.redis(&block)
  end

  def start(*arguments, **environment)
    command = ["sidekiq", "--require", "./jobs.rb", "--environment", "test", *arguments]
    environment = environment.to_h { |name, value| [name.to_s, value] }
    pid = Process.spawn(environment, *command, chdir: __dir__, %i[out err] => [@log.path, "a"])
    @processes << pid
    pid
  end

  def stop(pid, signal)
    @processes.delete(pid)
    Process.kill(signal, pid)
    Process.wait2(pid).last
  end

  def eventually
    sleep(0.02) until yield
  end

  def done
    redis { |redis| redis.hlen("done") }
  end

  # Every 10th job fails the first time, every 7th waits, and there are two queues.
  def enqueue(count)
    (0...count).each_slice(100) do |slice|
      plain, others = slice.partition { |number| number % 7 != 0 && number % 2 == 0 }
      Work.perform_bulk(plain.map { |number| arguments(number) })
      others.each do |number|
        job = number % 2 == 0 ? Work : Work.set(queue: "low")
        number % 7 == 0 ? job.perform_in(1 + number % 3, *arguments(number)) : job.perform_async(*arguments(number))
      end
    end
  end

  def arguments(number)
    [number, {"failures" => number % 10 == 0 ? 1 : 0}]
  end

  def nothing_is_left
    [Sidekiq::Queue.new("default"), Sidekiq::Queue.new("low"), Sidekiq::ScheduledSet.new, Sidekiq::RetrySet.new, Sidekiq::DeadSet.new]
      .each { |set| assert_equal 0, set.size, set.name }
    assert_empty(redis { |redis| redis.keys("working:*") })
  end

  def worker_arguments
    ["--queue", "default", "--queue", "low", "--concurrency", CONCURRENCY.to_s]
  end

  def test_a_thousand_jobs_with_a_reliable_fetch_and_two_workers_killed
    count = 1000
    enqueue(count)
    (1..2).each do |kill|
      worker = start(*worker_arguments, RELIABLE_FETCH: "1")
      eventually { done >= kill * 200 }
      stop(worker, :KILL)
      assert_operator done, :<, count
      working = redis { |redis| redis.keys("working:*").sum { |list| redis.llen(list) } }
      assert_includes 1..CONCURRENCY, working
    end
    start(*worker_arguments, RELIABLE_FETCH: "1")
    # A wait for a retry is up to ten seconds, so the last ones do not wait for theirs.
    eventually { done + Sidekiq::RetrySet.new.size == count }
    Sidekiq::RetrySet.new.retry_all
    eventually { done == count }
    @processes.dup.each { |pid| assert_equal 0, stop(pid, :TERM).exitstatus }
    nothing_is_left
    assert_equal (0...count).map(&:to_s).sort, redis { |redis| redis.hkeys("done") }.sort
  end

  # Without an extension, Sidekiq has nothing of a job but what is in the process that runs it.
  def test_a_killed_worker_loses_no_more_than_it_had_at_hand
    count = 300
    Work.perform_bulk((0...count).map { |number| [number] })
    worker = start(*worker_arguments)
    eventually { done >= 50 }
    stop(worker, :KILL)
    lost = count - done - Sidekiq::Queue.new.size
    assert_includes 1..CONCURRENCY, lost
    start(*worker_arguments)
    eventually { done == count - lost && Sidekiq::Queue.new.size == 0 }
    nothing_is_left
  end

  def test_a_worker_that_is_told_to_stop_puts_its_jobs_back
    [1, 2].each { |number| Work.perform_async(number, {"sleep" => 3600}) }
    (3..100).each { |number| Work.perform_async(number) }
    worker = start(*worker_arguments, "--timeout", "1")
    eventually { done >= 20 }
    assert_equal 0, stop(worker, :TERM).exitstatus
    assert_equal 100, done + Sidekiq::Queue.new.size
    start(*worker_arguments)
    eventually { done == 100 }
    assert_equal({"1" => "1", "2" => "1"}, redis { |redis| redis.mapped_hmget("done", "1", "2") })
    assert_equal "2", redis { |redis| redis.hget("tries", "1") }
  end

  def test_the_first_queue_comes_first
    (0...20).each { |number| Work.set(queue: "low").perform_async(number) }
    (20...40).each { |number| Work.set(queue: "high").perform_async(number) }
    start("--queue", "high", "--queue", "low", "--concurrency", "1")
    eventually { done == 40 }
    assert_equal [*20...40, *0...20].map(&:to_s), redis { |redis| redis.lrange("order", 0, -1) }
  end

  def test_scheduled_jobs_wait
    due = Time.now.to_f + 2
    Work.perform_at(due, 1)
    Work.perform_in(3600, 2)
    assert_equal [2, 1], Sidekiq::ScheduledSet.new.map { |job| job.args.first }
    start
    eventually { done == 1 }
    assert_operator redis { |redis| redis.hget("done-at", "1") }.to_f, :>=, due
    Sidekiq::ScheduledSet.new.each(&:add_to_queue)
    eventually { done == 2 }
  end

  def test_retries_and_dead_jobs
    Work.perform_async(1, {"failures" => 2})
    Hopeless.perform_async("no use")
    start
    eventually { Sidekiq::RetrySet.new.size == 1 && Sidekiq::DeadSet.new.size == 1 }
    job = Sidekiq::RetrySet.new.first
    assert_equal ["Work", 0, "job 1, try 1"], [job.klass, job["retry_count"], job["error_message"]]
    assert_equal 5, job.error_backtrace.size
    # The next try does not wait, the one after it does.
    Sidekiq::RetrySet.new.retry_all
    eventually { done == 1 }
    dead = Sidekiq::DeadSet.new.first
    assert_equal [["no use"], "no use"], [dead.args, dead["error_message"]]
    dead.delete
    assert_equal 0, Sidekiq::DeadSet.new.size
  end

  def test_queues_by_the_api
    jids = Work.perform_bulk((0...120).map { |number| [number] })
    Work.set(queue: "low").perform_async(1000)
    queue = Sidekiq::Queue.new
    assert_equal 120, queue.size
    assert_equal jids, queue.map(&:jid).reverse
    assert_equal [7], queue.find_job(jids[7]).args
    assert queue.find_job(jids[7]).delete
    assert_nil queue.find_job(jids[7])
    assert_operator queue.latency, :>=, 0
    assert_equal({"default" => 119, "low" => 1}, Sidekiq::Stats.new.queues)
    assert_equal 120, Sidekiq::Stats.new.enqueued
    queue.clear
    assert_equal ["low"], Sidekiq::Queue.all.map(&:name)

    set = Sidekiq::ScheduledSet.new
    jid = Work.perform_in(3600, 5)
    Work.perform_in(3600, 6)
    assert_equal [5], set.find_job(jid).args
    assert_equal [6], set.scan('"args":\\[6\\]').map(&:args).flatten
    set.find_job(jid).reschedule(Time.now + 7200)
    assert_equal [5, 6], set.map { |job| job.args.first }
    assert set.find_job(jid).delete
    set.clear
    assert_equal 0, set.size
  end

  def test_processes_and_statistics
    worker = start("--concurrency", "3")
    eventually { Sidekiq::ProcessSet.new.size == 1 }
    process = Sidekiq::ProcessSet.new.first
    assert_equal [worker, 3, ["default"]], [process["pid"], process["concurrency"], process.queues]
    (0...30).each { |number| Work.perform_async(number) }
    Work.perform_async(30, {"sleep" => 3600})
    Hopeless.perform_async("no use")
    eventually { done == 30 }
    process.quiet!
    # It tells every few seconds what it does, and looks for what it is told.
    eventually { Sidekiq::Stats.new.processed == 31 && Sidekiq::Workers.new.size == 1 }
    assert_equal 1, Sidekiq::Stats.new.failed
    assert_equal 31, Sidekiq::Stats::History.new(2).processed.values.sum
    _process, _thread, work = Sidekiq::Workers.new.first
    assert_equal [30, {"sleep" => 3600}], work["payload"]["args"]
    eventually { Sidekiq::ProcessSet.new.first.stopping? }
  end
end

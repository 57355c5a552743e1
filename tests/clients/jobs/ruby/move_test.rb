# frozen_string_literal: true

# Sidekiq while its queues move from a Redis to the server at HOLDFAST_TEST_ADDR=host:port, by the steps of docs/moving-in.md: jobs are
# enqueued and done meanwhile. Every job is done, once. HOLDFAST_BIN has the tool.

require "minitest/autorun"
require "open3"
require "socket"
require "tmpdir"

PORT = TCPServer.open("127.0.0.1", 0) { |listener| listener.addr[1] }
ENV["REDIS_URL"] = "redis://127.0.0.1:#{PORT}/0"

require "sidekiq/api"
require "timeout"
require_relative "jobs"

Sidekiq.logger.level = Logger::WARN

class MoveTest < Minitest::Test
  SECONDS_MAX = 80
  TARGET = "redis://#{ENV.fetch("HOLDFAST_TEST_ADDR")}"
  TOOL = ENV.fetch("HOLDFAST_BIN", "")
  PREPARED = 200

  def setup
    @dir = Dir.mktmpdir
    @processes = []
  end

  def teardown
    @processes.dup.each { |pid| stop(pid, :KILL) }
    puts "What the processes said:", *Dir["#{@dir}/*.log"].flat_map { |file| [file, File.readlines(file).last(30)] } unless passed? || skipped?
    FileUtils.rm_rf(@dir)
  end

  def start(name, *command)
    pid = Process.spawn(*command, chdir: __dir__, %i[out err] => File.join(@dir, "#{name}.log"))
    @processes << pid
    pid
  end

  def stop(pid, signal)
    @processes.delete(pid)
    Process.kill(signal, pid)
    Process.wait2(pid).last
  end

  def worker(name)
    start(name, "sidekiq", "--require", "./jobs.rb", "--environment", "test", "--queue", "default", "--queue", "low", "--concurrency", "5")
  end

  def said(name)
    File.read(File.join(@dir, "#{name}.log"))
  end

  def eventually
    Timeout.timeout(SECONDS_MAX) { sleep(0.02) until yield }
  end

  def redis(&block)
    Sidekiq.redis(&block)
  end

  def done
    redis { |redis| redis.hlen("done") }
  end

  # Every 10th job fails the first time, every 7th waits, and there are two queues.
  def enqueue(number)
    arguments = [number, {"failures" => number % 10 == 0 ? 1 : 0}]
    job = number.even? ? Work : Work.set(queue: "low")
    number % 7 == 0 ? job.perform_in(3, *arguments) : job.perform_async(*arguments)
  end

  def is_program?(name, version)
    Open3.capture2e(name, "--version").first.include?(version)
  rescue SystemCallError
    false
  end

  def test_live_queues_are_moved_and_every_job_is_done_once
    skip("there is no redis-server on this machine") unless is_program?("redis-server", "Redis")
    skip("HOLDFAST_BIN names no holdfast") unless is_program?(TOOL, "holdfast ")
    old = start("redis", "redis-server", "--port", PORT.to_s, "--bind", "127.0.0.1", "--save", "", "--dir", @dir)
    eventually { said("redis").include?("Ready to accept connections") }
    (0...PREPARED).each { |number| enqueue(number) }
    first = worker("first")
    eventually { done >= 50 }

    follower = start("follower", TOOL, "import", "--follow", "redis://127.0.0.1:#{PORT}", "--to", TARGET, "--replace")
    eventually { said("follower").include?("all data has come") }
    count = PREPARED
    enqueuing = true
    enqueuer = Thread.new do
      while enqueuing
        enqueue(count)
        count += 1
        sleep(0.01)
      end
    end
    now = done
    eventually { count > PREPARED + 50 && done > now }
    # The worker takes no new job, ends those that it has, and then itself.
    Process.kill(:TSTP, first)
    assert_equal 0, stop(first, :TERM).exitstatus
    # This client is told to stop; others, which are not, wait for the end of the pause.
    enqueuing = false
    enqueuer.join
    output, status = Open3.capture2e(TOOL, "import", "--promote", "--to", TARGET, "--pause-source", "30")
    assert_equal 0, status.exitstatus, output
    @processes.delete(follower)
    assert_equal 0, Process.wait2(follower).last.exitstatus
    stop(old, :KILL)

    ENV["REDIS_URL"] = "#{TARGET}/0"
    Sidekiq.redis = {url: ENV["REDIS_URL"]}
    (count...count + 50).each { |number| enqueue(number) }
    count += 50
    last = worker("last")
    # A wait for a retry is up to ten seconds, so the last ones do not wait for theirs.
    eventually { done + Sidekiq::RetrySet.new.size == count }
    Sidekiq::RetrySet.new.retry_all
    eventually { done == count }
    assert_equal 0, stop(last, :TERM).exitstatus
    counts = redis { |redis| redis.hgetall("done") }
    assert_equal (0...count).map(&:to_s).sort, counts.keys.sort
    assert_equal ["1"], counts.values.uniq
    [Sidekiq::Queue.new("default"), Sidekiq::Queue.new("low"), Sidekiq::ScheduledSet.new, Sidekiq::RetrySet.new, Sidekiq::DeadSet.new]
      .each { |set| assert_equal 0, set.size, set.name }
  end
end
